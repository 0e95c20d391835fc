"""Identifiers of rows: UUIDs of version 7 (RFC 9562), which sort by the time of their making."""

from uuid import UUID

from uuid_utils import compat


def new_id() -> UUID:
    """A fresh UUIDv7; within one process later calls sort later."""
    return compat.uuid7()


def parse_id(text: object) -> UUID | None:
    """The UUID that `text` spells in the canonical form of 36 characters, any case; None for all else."""
    if not isinstance(text, str) or len(text) != 36:
        return None
    try:
        return UUID(text)
    except ValueError:
        return None
