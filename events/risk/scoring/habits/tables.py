"""Tables of the names that a state or a baseline knows: digests instead of the texts."""

from functools import lru_cache
from hashlib import blake2b

from events.risk.scoring.habits import packed

FORGOTTEN = 0.05  # weight below which a name counts as never seen (ninety days after one sighting)


class Table:
    """Names with a weight each, in order of first sight: packed digests, and as many packed doubles."""

    def __init__(self, names: bytes = b"", weights: bytes = b"") -> None:
        self.names = names
        self.weights = weights

    def __len__(self) -> int:
        return len(self.names) // packed.NAME

    def get(self, name: bytes) -> float:
        at = packed.find(self.names, name)
        return 0.0 if at < 0 else packed.double_at(self.weights, at)

    def knows(self, name: bytes, fading: float) -> bool:
        """Return whether the name was seen and is not yet forgotten."""
        return self.get(name) * fading >= FORGOTTEN

    def add(self, name: bytes, weight: float, limit: int) -> float:
        """Add to a name's weight and return the weight before; beyond `limit` names the lightest goes."""
        at = packed.find(self.names, name)
        if at < 0:
            if len(self.names) >= limit * packed.NAME:
                self.drop(packed.least(self.weights))
            self.names += name
            self.weights = packed.with_double(self.weights, len(self.weights), weight)
            return 0.0
        before = packed.double_at(self.weights, at)
        self.weights = packed.with_double(self.weights, at, before + weight)
        return before

    def set(self, name: bytes, weight: float) -> None:
        """Replace the weight of a name of the table."""
        self.weights = packed.with_double(self.weights, packed.find(self.names, name), weight)

    def remove(self, name: bytes) -> None:
        at = packed.find(self.names, name)
        if at >= 0:
            self.drop(at)

    def drop(self, at: int) -> None:
        self.names = packed.without(self.names, at)
        self.weights = packed.without(self.weights, at)

    def scale(self, factor: float) -> None:
        self.weights = scaled(self.weights, factor)


def scaled(doubles: bytes, factor: float) -> bytes:
    return packed.pack(tuple([value * factor for value in packed.unpack(doubles)]))


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
