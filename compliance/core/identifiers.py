"""Identifiers of rows: UUIDs of version 7 (RFC 9562), which sort by time."""

import random
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import count
from uuid import UUID

from uuid_utils import compat

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_VERSION, _VARIANT = 0x7000, 0x80_0000
_TURNS = (1 << 22) - 1
_RANDOM_BITS = 40
_LENGTH = 36
_turn = count()
# UUID() reads much else: braces, digits of other scripts, hyphens anywhere.
_CANONICAL = re.compile("[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def new_id() -> UUID:
    """A fresh UUIDv7; within one process later calls sort later."""
    return compat.uuid7()


def new_id_at(moment: datetime) -> str:
    """The text of a fresh UUIDv7 of that moment; within one microsecond later calls sort later.

    The twelve bits behind the milliseconds are their fraction (RFC 9562 §6.2, method 3). Ids are no secrets:
    those of one moment share their random bits and differ in a counter.
    """
    start, end = _common_to_ids(moment)
    turn = f"{_VARIANT | next(_turn) & _TURNS:06x}"
    return f"{start}{turn[:4]}-{turn[4:]}{end}"


@lru_cache(maxsize=64)
def _common_to_ids(moment: datetime) -> tuple[str, str]:
    """Beginning and end of the ids of that moment; a fork reseeds the random generator."""
    microseconds = int(moment.timestamp() * 1e6 + 0.5)
    fraction = (microseconds % 1000 * 4096 + 999) // 1000
    milliseconds = f"{microseconds // 1000:012x}"
    start = f"{milliseconds[:8]}-{milliseconds[8:]}-{_VERSION | fraction:04x}-"
    return start, f"{random.getrandbits(_RANDOM_BITS):010x}"


def first_id_at(moment: datetime) -> UUID:
    """The bound between ids made before `moment`'s millisecond and those made in it or later."""
    return UUID(int=max((moment - _EPOCH) // _MICROSECOND // 1000, 0) << 80)


def moment_of(identifier: UUID) -> datetime:
    """Return the time of a UUIDv7, or of a bound of `first_id_at`, to the millisecond."""
    return _EPOCH + timedelta(milliseconds=identifier.int >> 80)


def parse_id(text: object) -> UUID | None:
    """The UUID that `text` spells as 8-4-4-4-12 hex digits in any case (RFC 9562 §4); None for all else."""
    return UUID(text) if isinstance(text, str) and _CANONICAL.fullmatch(text) else None


def canonical_id(text: str) -> str | None:
    """As `parse_id()`, but the UUID's text as the service writes it."""
    # The cache would keep texts of any length.
    return _canonical_id(text) if len(text) == _LENGTH else None


@lru_cache(maxsize=8192)
def _canonical_id(text: str) -> str | None:
    found = parse_id(text)
    return None if found is None else str(found)
