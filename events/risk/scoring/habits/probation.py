"""Names on probation: met, but not known yet, since what is new may be an attack's.

A table of waiting names has one number for each: the days (since the epoch) it was first and last met, on how
many days it was met, its kind of novelty, and whether that novelty counts in the agent's rate already.
"""

from typing import NamedTuple

from events.risk.scoring.habits import packed
from events.risk.scoring.habits.tables import Table

LEAST_SPAN, LEAST_DAYS = 3, 3  # days from the first meeting to the last, and days met, that make a name known
LONG_SPAN, FEW_DAYS = 7, 2  # or fewer days over a longer time
LONGEST_WAIT = 40  # days without a meeting after which a name is forgotten
_MOST_SPAN, _MOST_DAYS, _KINDS = 64, 16, 16  # values that the number has room for


class Meeting(NamedTuple):
    """When a name was met: the `first` day (since the epoch), days from it to the last one, on how many days.

    `kind`: where in `state.KINDS` its novelty counts, `EVENT` for an act, whose novelty counts nowhere.
    """

    first: int
    span: int
    days: int
    kind: int
    is_counted: bool

    @property
    def is_over(self) -> bool:
        """Whether probation is over: the name is known from now on."""
        return (self.span >= LEAST_SPAN and self.days >= LEAST_DAYS) or (
            self.span >= LONG_SPAN and self.days >= FEW_DAYS
        )


def packed_meeting(met: Meeting) -> float:
    days = min(met.span, _MOST_SPAN - 1) * _MOST_DAYS + min(met.days, _MOST_DAYS - 1)
    return float((met.first * _MOST_SPAN * _MOST_DAYS + days) * _KINDS * 2 + met.kind * 2 + met.is_counted)


def unpacked_meeting(number: float) -> Meeting:
    rest, low = divmod(int(number), _KINDS * 2)
    rest, days = divmod(rest, _MOST_DAYS)
    first, span = divmod(rest, _MOST_SPAN)
    return Meeting(first, span, days, low >> 1, bool(low & 1))


def meet(waiting: Table, name: bytes, day: int, kind: int, limit: int, *, is_counted: bool = False) -> bool:
    """Note that a name was met; return whether its probation is over, which takes it off the table.

    `is_counted`: the novelty of a name that was never met counts already, as that of another one.
    """
    number = waiting.get(name)
    if not number:
        waiting.add(name, packed_meeting(Meeting(day, 0, 1, kind, is_counted)), limit)
        return False
    met = _met_again(number, day)
    if met.is_over:
        waiting.remove(name)
        return True
    waiting.set(name, packed_meeting(met))
    return False


def ends_probation(waiting: Table, name: bytes, day: int) -> bool:
    """Return whether one more meeting on this day would end the name's probation."""
    number = waiting.get(name)
    return number > 0.0 and _met_again(number, day).is_over


def was_met(waiting: Table, name: bytes, kind: int) -> bool:
    """Return whether the name waits, and was first met by an action of this kind."""
    number = waiting.get(name)
    return number > 0.0 and unpacked_meeting(number).kind == kind


def _met_again(number: float, day: int) -> Meeting:
    first, span, days, kind, is_counted = unpacked_meeting(number)
    grown = max(day - first, span)
    return Meeting(first, grown, days + (grown > span), kind, is_counted)


def take_uncounted(waiting: Table, day: int) -> list[int]:
    """Return the kinds of the names that have waited long enough to count as the agent's own novelty.

    Notes that they were returned, so that each name counts once, and forgets names not met for 40 days.
    """
    found = []
    for at in range(len(waiting.names) - packed.NAME, -1, -packed.NAME):
        name = waiting.names[at : at + packed.NAME]
        met = unpacked_meeting(waiting.get(name))
        if day - met.first < LEAST_SPAN:
            continue
        if not met.is_counted:
            found.append(met.kind)
            waiting.set(name, packed_meeting(met._replace(is_counted=True)))
        if day - met.first - met.span > LONGEST_WAIT:
            waiting.remove(name)
    return found
