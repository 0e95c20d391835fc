"""Answers about events."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agentid.client.records import Record


@dataclass(frozen=True, kw_only=True)
class BehaviorEvent(Record):
    """What an agent did, and how it scored."""

    id: str
    agent_id: str
    action_type: str
    risk_score: float
    risk_band: str
    occurred_at: datetime
    details: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ScoreReason(Record):
    """One contribution to a score; `weight` in log-odds, of a broken rule what lifts its action to 0.90."""

    name: str
    observed: str
    expected: str
    weight: float


@dataclass(frozen=True, kw_only=True)
class EventReview(Record):
    """An officer's verdict on an event."""

    id: str
    event_id: str
    verdict: str
    note: str | None
    marked: tuple[str, ...]
    reviewed_by: str
    reviewed_at: datetime


@dataclass(frozen=True, kw_only=True)
class ExplainedEvent(BehaviorEvent):
    """An event with why it scored as it did, the strongest reasons first, and what an officer made of it."""

    session_id: str | None
    chain_id: str | None
    received_at: datetime
    reasons: tuple[ScoreReason, ...]
    model_version: str
    review: EventReview | None


@dataclass(frozen=True, kw_only=True)
class BatchResult(Record):
    """The answer that `POST /v1/events` would have given for one event of a batch."""

    status: int
    data: BehaviorEvent | None = None
    error: str | None = None
