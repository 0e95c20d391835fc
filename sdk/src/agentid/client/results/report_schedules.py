"""Answers about report schedules."""

from dataclasses import dataclass
from datetime import datetime

from agentid.client.records import Record


@dataclass(frozen=True, kw_only=True)
class ReportSchedule(Record):
    """A schedule; `next_start` begins the period that it reports next."""

    id: str
    type: str
    cadence: str
    next_start: datetime
    created_at: datetime
    ended_at: datetime | None
