"""Tables of the names that a state or a baseline knows: digests instead of the texts.

Names on probation are met, but not known yet, since what is new may be an attack's. A table of waiting names
has one number for each: the days (since the epoch) it was first and last met, on how many days it was met,
its kind of novelty, and whether that novelty counts in the agent's rate already. A table of payees has the
most that the agent paid to each, and since when: a sum is usual for a payee who got as much a week before.
"""

from functools import lru_cache
from hashlib import blake2b

from events.risk.scoring import packed

FORGOTTEN = 0.05  # weight below which a name counts as never seen (ninety days after one sighting)


class Table:
    """Names with a weight each, in order of first sight: packed digests, then as many packed doubles."""

    def __init__(self, held: bytes = b"") -> None:
        self.held = held

    @property
    def names(self) -> bytes:
        return self.held[: len(self.held) // 2]

    @property
    def weights(self) -> bytes:
        return self.held[len(self.held) // 2 :]

    def __len__(self) -> int:
        return len(self.held) // (packed.NAME + packed.NUMBER)

    def get(self, name: bytes) -> float:
        at = packed.find(self.held, name)
        return 0.0 if at < 0 else packed.double_at(self.held, at)

    def knows(self, name: bytes, fading: float) -> bool:
        """Return whether the name was seen and is not yet forgotten."""
        return self.get(name) * fading >= FORGOTTEN

    def add(self, name: bytes, weight: float, limit: int) -> float:
        """Add to a name's weight and return the weight before; beyond `limit` names the lightest goes."""
        at = packed.find(self.held, name)
        if at < 0:
            if len(self) >= limit:
                self.held = packed.without(self.held, packed.least(self.held))
            self.held = packed.with_name(self.held, name, weight)
            return 0.0
        before = packed.double_at(self.held, at)
        self.held = packed.with_double(self.held, at, before + weight)
        return before

    def set(self, name: bytes, weight: float) -> None:
        """Replace the weight of a name of the table."""
        self.held = packed.with_double(self.held, packed.find(self.held, name), weight)

    def remove(self, name: bytes) -> None:
        at = packed.find(self.held, name)
        if at >= 0:
            self.held = packed.without(self.held, at)

    def scale(self, factor: float) -> None:
        self.held = self.names + packed.pack(tuple([one * factor for one in packed.unpack(self.weights)]))


@lru_cache(maxsize=8192)
def digest(text: str) -> bytes:
    """Return a name's digest: eight bytes, the same in every process."""
    return blake2b(text.encode("utf-8", "replace"), digest_size=packed.NAME).digest()


def act_digest(act: str) -> bytes:
    """Return the digest of a kind of act, which is no place's."""
    return digest(f"\n{act}")


@lru_cache(maxsize=8192)
def pair_digest(first: bytes, second: bytes) -> bytes:
    return blake2b(first + b">" + second, digest_size=packed.NAME).digest()


OMITTED = digest("")


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


LEAST_SPAN, LEAST_DAYS = 3, 3  # days from the first meeting to the last, and days met, that make a name known
LONG_SPAN, FEW_DAYS = 7, 2  # or fewer days over a longer time
LONGEST_WAIT = 40  # days without a meeting after which a name is forgotten
_MOST_SPAN, _MOST_DAYS, _MOST_KIND = 63, 15, 15  # what the number has room for, in six, four and four bits


class Meeting:
    """When a name was met: the `first` day (since the epoch), days from it to the last one, on how many days.

    `kind`: where in `state.KINDS` its novelty counts, `EVENT` for an act, whose novelty counts nowhere.
    """

    def __init__(self, number: float) -> None:
        bits = int(number)
        self.first = bits >> 15
        self.span = bits >> 9 & _MOST_SPAN
        self.days = bits >> 5 & _MOST_DAYS
        self.kind = bits >> 1 & _MOST_KIND
        self.is_counted = bits & 1 == 1

    def again(self, day: int) -> None:
        span = max(day - self.first, self.span)
        self.days += span > self.span
        self.span = span

    def is_over(self) -> bool:
        """Return whether probation is over: the name is known from now on."""
        return (self.span >= LEAST_SPAN and self.days >= LEAST_DAYS) or (
            self.span >= LONG_SPAN and self.days >= FEW_DAYS
        )

    def number(self) -> float:
        span, days = min(self.span, _MOST_SPAN), min(self.days, _MOST_DAYS)
        return float(self.first << 15 | span << 9 | days << 5 | self.kind << 1 | self.is_counted)


def meet(waiting: Table, name: bytes, day: int, kind: int, limit: int, *, is_counted: bool = False) -> bool:
    """Note that a name was met; return whether its probation is over, which takes it off the table.

    `is_counted`: the novelty of a name that was never met counts already, as that of another one.
    """
    number = waiting.get(name)
    if not number:
        waiting.add(name, float(day << 15 | 1 << 5 | kind << 1 | is_counted), limit)
        return False
    met = Meeting(number)
    met.again(day)
    if met.is_over():
        waiting.remove(name)
        return True
    waiting.set(name, met.number())
    return False


def ends_probation(waiting: Table, name: bytes, day: int) -> bool:
    """Return whether one more meeting on this day would end the name's probation."""
    number = waiting.get(name)
    if not number:
        return False
    met = Meeting(number)
    met.again(day)
    return met.is_over()


def was_met(waiting: Table, name: bytes, kind: int) -> bool:
    """Return whether the name waits, and was first met by an action of this kind."""
    number = waiting.get(name)
    return number > 0.0 and Meeting(number).kind == kind


def take_uncounted(waiting: Table, day: int) -> list[int]:
    """Return the kinds of the names that have waited long enough to count as the agent's own novelty.

    Notes that they were returned, so that each name counts once, and forgets names not met for 40 days.
    """
    found, forgotten = [], []
    names, numbers = waiting.names, packed.unpack(waiting.weights)
    for place, number in enumerate(numbers):
        met = Meeting(number)
        waited = day - met.first
        if waited >= LEAST_SPAN:
            if not met.is_counted:
                found.append(met.kind)
                numbers[place] = number + 1.0
            if waited - met.span > LONGEST_WAIT:
                forgotten.append(place)
    waiting.held = names + packed.pack(tuple(numbers))
    for place in reversed(forgotten):
        waiting.remove(names[place * packed.NAME : (place + 1) * packed.NAME])
    return found
