"""Names that an agent or a tenant is known by, each with a weight: digests instead of the texts."""

from functools import lru_cache
from hashlib import blake2b

from events.scoring.packed import NAME, double_at, find, pack, unpack, with_double, without

FORGOTTEN = 0.05
"""A weight below which a name counts as never seen (some ninety days after a single sighting)."""


class Table:
    """Names with a weight each, in order of first sight: digests of `NAME` bytes, and as many doubles."""

    def __init__(self, names: bytes = b"", weights: bytes = b"") -> None:
        self.names = names
        self.weights = weights

    def __len__(self) -> int:
        return len(self.names) // NAME

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and (self.names, self.weights) == (other.names, other.weights)

    __hash__ = None  # type: ignore[assignment]

    def get(self, name: bytes) -> float:
        """The name's weight, 0 if it isn't there."""
        at = find(self.names, name)
        return 0.0 if at < 0 else double_at(self.weights, at)

    def knows(self, name: bytes, fading: float) -> bool:
        """Whether the name was seen and is not yet forgotten."""
        return self.get(name) * fading >= FORGOTTEN

    def add(self, name: bytes, weight: float, limit: int) -> float:
        """Add to a name's weight and tell what it was; beyond `limit` names the lightest goes."""
        at = find(self.names, name)
        if at < 0:
            if len(self.names) >= limit * NAME:
                self._drop_lightest()
            self.names += name
            self.weights = with_double(self.weights, len(self.weights), weight)
            return 0.0
        before = double_at(self.weights, at)
        self.weights = with_double(self.weights, at, before + weight)
        return before

    def has_waited(self, name: bytes, now: float, seconds: float, limit: int) -> bool:
        """Whether the name was first asked for at least so long ago; the first time starts its wait."""
        since = self.get(name)
        if not since:
            self.add(name, now, limit)
            return False
        return now - since >= seconds

    def items(self) -> list[tuple[bytes, float]]:
        names = [self.names[at : at + NAME] for at in range(0, len(self.names), NAME)]
        return list(zip(names, unpack(self.weights), strict=True))

    def scale(self, factor: float) -> None:
        """Multiply every weight."""
        self.weights = scaled(self.weights, factor)

    def copy(self) -> "Table":
        return table_of(self.names, self.weights)

    def _drop_lightest(self) -> None:
        weights = unpack(self.weights)
        at = weights.index(min(weights)) * NAME
        self.names = without(self.names, at)
        self.weights = without(self.weights, at)


def table_of(names: bytes, weights: bytes) -> Table:
    """A table of what is packed already."""
    table = Table.__new__(Table)
    table.names = names
    table.weights = weights
    return table


def scaled(doubles: bytes, factor: float) -> bytes:
    """Packed doubles, each multiplied."""
    return pack(tuple([value * factor for value in unpack(doubles)]))


@lru_cache(maxsize=8192)
def digest(text: str) -> bytes:
    """A name as a stable 64-bit number."""
    return blake2b(text.encode("utf-8", "replace"), digest_size=NAME).digest()


@lru_cache(maxsize=8192)
def pair_digest(first: bytes, second: bytes) -> bytes:
    """Two names in order as one."""
    return blake2b(first + b">" + second, digest_size=NAME).digest()
