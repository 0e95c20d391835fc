"""Names on probation: met, but not known yet, since what is new may be an attack's.

A table of waiting names has one number for each: the days (since the epoch) it was first and last met, on how
many days it was met, its kind of novelty, and whether that novelty counts in the agent's rate already.
"""

from events.risk.scoring.habits import packed
from events.risk.scoring.habits.tables import Table

LEAST_SPAN, LEAST_DAYS = 3, 3  # days from the first meeting to the last, and days met, that make a name known
LONG_SPAN, FEW_DAYS = 7, 2  # or fewer days over a longer time
LONGEST_WAIT = 40  # days without a meeting after which a name is forgotten
_MOST_SPAN, _MOST_DAYS, _MOST_KIND = 63, 15, 15  # what the number has room for, in six, four and four bits


class Meeting:
    """When a name was met: the `first` day (since the epoch), days from it to the last one, on how many days.

    `kind`: where in `state.KINDS` its novelty counts, `EVENT` for an act, whose novelty counts nowhere.
    """

    __slots__ = ("days", "first", "is_counted", "kind", "span")

    def __init__(self, first: int, span: int, days: int, kind: int, is_counted: bool) -> None:
        self.first = first
        self.span = span
        self.days = days
        self.kind = kind
        self.is_counted = is_counted

    def is_over(self) -> bool:
        """Return whether probation is over: the name is known from now on."""
        return (self.span >= LEAST_SPAN and self.days >= LEAST_DAYS) or (
            self.span >= LONG_SPAN and self.days >= FEW_DAYS
        )


def packed_meeting(met: Meeting) -> float:
    span, days = min(met.span, _MOST_SPAN), min(met.days, _MOST_DAYS)
    return float(met.first << 15 | span << 9 | days << 5 | met.kind << 1 | met.is_counted)


def unpacked_meeting(number: float) -> Meeting:
    bits = int(number)
    met = Meeting.__new__(Meeting)
    met.first = bits >> 15
    met.span = bits >> 9 & _MOST_SPAN
    met.days = bits >> 5 & _MOST_DAYS
    met.kind = bits >> 1 & _MOST_KIND
    met.is_counted = bits & 1 == 1
    return met


def meet(waiting: Table, name: bytes, day: int, kind: int, limit: int, *, is_counted: bool = False) -> bool:
    """Note that a name was met; return whether its probation is over, which takes it off the table.

    `is_counted`: the novelty of a name that was never met counts already, as that of another one.
    """
    number = waiting.get(name)
    if not number:
        waiting.add(name, packed_meeting(Meeting(day, 0, 1, kind, is_counted)), limit)
        return False
    met = _met_again(number, day)
    if met.is_over():
        waiting.remove(name)
        return True
    waiting.set(name, packed_meeting(met))
    return False


def ends_probation(waiting: Table, name: bytes, day: int) -> bool:
    """Return whether one more meeting on this day would end the name's probation."""
    number = waiting.get(name)
    return number > 0.0 and _met_again(number, day).is_over()


def was_met(waiting: Table, name: bytes, kind: int) -> bool:
    """Return whether the name waits, and was first met by an action of this kind."""
    number = waiting.get(name)
    return number > 0.0 and unpacked_meeting(number).kind == kind


def _met_again(number: float, day: int) -> Meeting:
    met = unpacked_meeting(number)
    span = max(day - met.first, met.span)
    met.days += span > met.span
    met.span = span
    return met


def take_uncounted(waiting: Table, day: int) -> list[int]:
    """Return the kinds of the names that have waited long enough to count as the agent's own novelty.

    Notes that they were returned, so that each name counts once, and forgets names not met for 40 days.
    """
    found, forgotten = [], []
    numbers = packed.unpack(waiting.weights)
    for place, number in enumerate(numbers):
        bits = int(number)
        waited = day - (bits >> 15)
        if waited < LEAST_SPAN:
            continue
        if not bits & 1:
            found.append(bits >> 1 & _MOST_KIND)
            numbers[place] = number + 1.0
        if waited - (bits >> 9 & _MOST_SPAN) > LONGEST_WAIT:
            forgotten.append(place)
    if found:
        waiting.weights = packed.pack(tuple(numbers))
    for place in reversed(forgotten):
        waiting.drop(place * packed.NAME)
    return found
