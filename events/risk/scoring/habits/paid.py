"""The most that an agent has paid to each payee, and since when: a number of a table for each.

A sum is usual for a payee who got as much a week before, whatever the agent pays others: a salary, a rent.
"""

from events.risk.scoring.habits.tables import Table

LEAST_AGE = 7  # days after which a sum paid without a verdict against it counts
AS_MUCH, ABOUT = 1.05, 0.9  # the most and the least of a sum's root that is about as much
_SUMS = 2**30  # a number holds the day times this, plus the root in 1,024ths
_PARTS, _MOST = 1_024.0, 2**20 - 1.0


def note_paid(paid: Table, payee: bytes, day: int, root: float, limit: int) -> None:
    """Note the square root of a sum, unless more was paid before.

    About as much again is usual once: from then on it takes another `LEAST_AGE` days.
    """
    number = paid.get(payee)
    if number and root <= AS_MUCH * _root(number):
        if root < ABOUT * _root(number) or not was_paid(paid, payee, day, root):
            return
        root = _root(number)
    noted = day * _SUMS + int(min(root, _MOST) * _PARTS)
    if number:
        paid.set(payee, float(noted))
    else:
        paid.add(payee, float(noted), limit)


def was_paid(paid: Table, payee: bytes, day: int, root: float) -> bool:
    """Return whether the payee got about as much long enough ago."""
    number = paid.get(payee)
    return number > 0.0 and day - int(number // _SUMS) >= LEAST_AGE and root <= AS_MUCH * _root(number)


def _root(number: float) -> float:
    return (number % _SUMS) / _PARTS
