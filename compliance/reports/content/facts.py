"""The facts of a report: plain values that `evidence` gathers and the controls assess."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

Row = dict[str, Any]
"""A listed fact; its fields have the names that the document has."""


@dataclass(frozen=True)
class Frame:
    """The subject of a report: a tenant and the period [start, end), as known at `generated_at`."""

    report_id: UUID
    tenant_id: UUID
    tenant_name: str
    environment: str
    start: datetime
    end: datetime
    generated_at: datetime
    agent_ids: tuple[UUID, ...] | None

    @property
    def covered_until(self) -> datetime:
        """The end of the period, or the time of generation if that is earlier."""
        return min(self.end, self.generated_at)


@dataclass(frozen=True)
class Spread:
    """How long something took: the middle and the longest of `count` times."""

    count: int
    median: timedelta
    longest: timedelta


@dataclass(frozen=True)
class Facts:
    """All facts of one report. Counts are complete; lists hold the newest rows, up to a limit.

    `enforcement`: the tenant's mode at the end. `observed_agents`: those not enforced all the time.
    `archives`: the spans of receipt, up to the end of the period, whose events were archived or dropped.
    `covered_from`: if events of the period were dropped, the end of the last such span; else None.
    `entries_from`: if audit entries of the period were dropped, the time before which they were; else None.
    `verdicts`: the last verdicts on high-risk events; `verdicts_by_keys`: those of API keys among them.
    `review_delays`: from receipt to first review.
    `stop_delays`: from the receipt of the last strike to the automatic stop, where the event is stored.
    """

    agents: tuple[Row, ...] = ()
    agent_count: int = 0
    agents_without_model_or_version: int = 0
    agents_without_scope: int = 0
    uncertified_active_agents: int = 0
    silent_agents: int = 0
    enforcement: str = "enforce"
    observed_agents: int = 0
    certificates: tuple[Row, ...] = ()
    certificate_count: int = 0
    certificates_at_end: int = 0
    revocation_count: int = 0
    overlong_certificates: int = 0
    high_risk: tuple[Row, ...] = ()
    events_by_band: dict[str, int] = field(default_factory=dict)
    events_by_action: dict[str, int] = field(default_factory=dict)
    model_versions: tuple[str, ...] = ()
    verdicts: dict[str, int] = field(default_factory=dict)
    verdicts_by_keys: int = 0
    review_delays: Spread | None = None
    stop_delays: Spread | None = None
    unlinked_transactions: int = 0
    trend_span: str = "day"
    trend: tuple[Row, ...] = ()
    oversight: tuple[Row, ...] = ()
    audit_by_type: dict[str, int] = field(default_factory=dict)
    human_interventions: int = 0
    delegation_count: int = 0
    delegations_rooted_in_a_human: int = 0
    delegations_checked_against_a_scope: int = 0
    oldest_event_at: datetime | None = None
    oldest_entry_at: datetime | None = None
    event_retention_days: int = 0
    audit_retention_days: int = 0
    archives: tuple[Row, ...] = ()
    covered_from: datetime | None = None
    entries_from: datetime | None = None
    is_log_guarded: bool = False
    checkpoint_size: int = 0
    checkpoint_root: str = ""
    witnessed_size: int = 0
    entries_under_checkpoint: int = 0

    @property
    def event_count(self) -> int:
        return sum(self.events_by_band.values())

    @property
    def entry_count(self) -> int:
        return sum(self.audit_by_type.values())

    @property
    def is_empty(self) -> bool:
        return self.event_count == self.entry_count == 0

    @property
    def complete_since(self) -> datetime | None:
        """The time to which the events and the audit entries stored both reach back."""
        return max(filter(None, (self.oldest_event_at, self.oldest_entry_at)), default=None)

    def audited(self, action: str) -> int:
        """Return the number of audit entries of an action."""
        return self.audit_by_type.get(action, 0)

    @property
    def stop_count(self) -> int:
        return self.audited("agent.high_risk")

    @property
    def suspension_count(self) -> int:
        return self.audited("agent.suspended")

    @property
    def would_have_stopped_count(self) -> int:
        return self.audited("agent.would_have_stopped")

    @property
    def high_risk_count(self) -> int:
        return self.events_by_band.get("high", 0)

    @property
    def transaction_count(self) -> int:
        names = ("transaction_initiated", "transaction_anomaly")
        return sum(self.events_by_action.get(name, 0) for name in names)
