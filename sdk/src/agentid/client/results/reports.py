"""Answers about reports."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agentid.client.records import Record


@dataclass(frozen=True, kw_only=True)
class Report(Record):
    """A report's state; `digest` once it is ready."""

    id: str
    type: str
    status: str
    period_start: datetime
    period_end: datetime
    agent_ids: tuple[str, ...] | None
    digest: str | None
    created_at: datetime
    completed_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class ReportDocument(Record):
    """A report's document and its digest."""

    report: Mapping[str, Any]
    digest: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ReportManifest(Record):
    """A report's manifest, its signature and the key that made it."""

    manifest: Mapping[str, Any]
    signature: str
    public_key: str
