"""Identifiers of rows: UUIDs of version 7 (RFC 9562), which sort by the time of their making."""

import secrets
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import UUID

from uuid_utils import compat

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_VERSION_AND_VARIANT = 7 << 76 | 2 << 62
_RANDOM_BITS = 42
_turn = count()


def new_id(at: datetime | None = None) -> UUID:
    """A fresh UUIDv7 of the present, or of the moment `at`; within one process later calls sort later.

    With `at` the twelve bits behind the milliseconds are their fraction (RFC 9562 §6.2, method 3), and calls
    of one microsecond sort in the order they were made.
    """
    if at is None:
        return compat.uuid7()
    milliseconds, microseconds = divmod((at - _EPOCH) // _MICROSECOND, 1000)
    tail = (next(_turn) & 0xFFFFF) << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
    fraction = (microseconds * 4096 + 999) // 1000
    return UUID(int=milliseconds << 80 | fraction << 64 | _VERSION_AND_VARIANT | tail)


def first_id_at(moment: datetime) -> UUID:
    """The bound between ids made before `moment`'s millisecond and those made in it or later."""
    return UUID(int=max((moment - _EPOCH) // _MICROSECOND // 1000, 0) << 80)


def moment_of(identifier: UUID) -> datetime:
    """When a UUIDv7, or a bound of `first_id_at`, was made, to the millisecond."""
    return _EPOCH + timedelta(milliseconds=identifier.int >> 80)


def parse_id(text: object) -> UUID | None:
    """The UUID that `text` spells in the canonical form of 36 characters, any case; None for all else."""
    if not isinstance(text, str) or len(text) != 36:
        return None
    try:
        return UUID(text)
    except ValueError:
        return None
