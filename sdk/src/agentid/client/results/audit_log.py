"""Answers about the audit log."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agentid.client.records import Record


@dataclass(frozen=True, kw_only=True)
class AuditEntry(Record):
    """An entry of the audit log."""

    id: str
    event_type: str
    actor_type: str
    actor_kind: str
    actor_id: str
    description: str | None
    affected_id: str | None
    metadata: Any
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class Consistency(Record):
    """A consistency proof; `hashes` in base64, in the order of RFC 6962 §2.1.2."""

    from_size: int
    to_size: int
    hashes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class WitnessReport(Record):
    """A witness; `name` is that of its cosignatures, `size` and `cosigned_at` are of the last one."""

    name: str
    size: int
    cosigned_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class LogState(Record):
    """Sizes in entries, 0 before the first: of the tree, of the newest checkpoint, of the published one."""

    tree_size: int
    signed_size: int
    published_size: int
    quorum: str
    witnesses: tuple[WitnessReport, ...]
