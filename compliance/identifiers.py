"""Identifiers of rows: UUIDs of version 7 (RFC 9562), which sort by the time of their making."""

import random
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import count
from uuid import UUID

from uuid_utils import compat

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_VERSION, _VARIANT = 0x7000, 0x80
_TURNS = (1 << 22) - 1
_RANDOM_BITS = 40
_turn = count()
# UUID() reads much else: braces, digits of other scripts, hyphens anywhere.
_CANONICAL = re.compile("[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX = tuple(f"{byte:02x}" for byte in range(256))


def new_id() -> UUID:
    """A fresh UUIDv7; within one process later calls sort later."""
    return compat.uuid7()


def new_id_at(moment: datetime) -> str:
    """The text of a fresh UUIDv7 of that moment; those of one microsecond sort in the order they were made.

    The twelve bits behind the milliseconds are their fraction (RFC 9562 §6.2, method 3). Ids are no secrets:
    those that a process makes of one moment share their random bits and differ in their turn.
    """
    start, end = _common_to_ids(moment)
    turn = next(_turn) & _TURNS
    # A format's `02x` costs thrice what a look into a table does.
    return f"{start}{_HEX[_VARIANT | turn >> 16]}{_HEX[turn >> 8 & 0xFF]}-{_HEX[turn & 0xFF]}{end}"


@lru_cache(maxsize=64)
def _common_to_ids(moment: datetime) -> tuple[str, str]:
    """How the ids of that moment, often a batch's, begin and end.

    The random bits come from a generator that a fork reseeds.
    """
    microseconds = int(moment.timestamp() * 1e6 + 0.5)
    fraction = (microseconds % 1000 * 4096 + 999) // 1000
    milliseconds = f"{microseconds // 1000:012x}"
    start = f"{milliseconds[:8]}-{milliseconds[8:]}-{_VERSION | fraction:04x}-"
    return start, f"{random.getrandbits(_RANDOM_BITS):010x}"


def first_id_at(moment: datetime) -> UUID:
    """The bound between ids made before `moment`'s millisecond and those made in it or later."""
    return UUID(int=max((moment - _EPOCH) // _MICROSECOND // 1000, 0) << 80)


def moment_of(identifier: UUID) -> datetime:
    """When a UUIDv7, or a bound of `first_id_at`, was made, to the millisecond."""
    return _EPOCH + timedelta(milliseconds=identifier.int >> 80)


def parse_id(text: object) -> UUID | None:
    """The UUID that `text` spells as 8-4-4-4-12 hex digits in any case (RFC 9562 §4); None for all else."""
    if not isinstance(text, str) or not _CANONICAL.fullmatch(text):
        return None
    return UUID(text)


@lru_cache(maxsize=8192)
def canonical_id(text: str) -> str | None:
    """The UUID that `text` spells, as the service writes it; None for all else. See `parse_id()`."""
    found = parse_id(text)
    return None if found is None else str(found)
