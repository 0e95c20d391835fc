"""The facts of a report: plain values that `evidence` gathers and the controls assess."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from auditlog.verifying.chosen_entries import ComparedEntries
from auditlog.vocabulary import ActorKind

Row = dict[str, Any]
"""A listed fact; its fields have the names that the document has."""


def fields_of(row: object, *names: str) -> Row:
    return {name: getattr(row, name) for name in names}


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
    """The distribution of durations: the middle and the longest of `count` times."""

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
    `verdicts`: the last verdicts on high-risk events; `verdicts_by`: the same by who gave them.
    `acts`: the audit entries by action and by who acted. `delegations`: those issued, by what their root is:
    `verified` or `asserted` people, or `nobody`. `incidents`: those opened, by their present state.
    `retention_changes`: the recorded changes of the retention, oldest first.
    `comparison`: the audit entries against the tree; `places_without_entry`: what is missing around them.
    `erased_parts`, `erased_entries`: what was erased in the period, of whatever age.
    `whole_log`: what the last verification of the whole log found.
    `review_delays`: from receipt to first review.
    `stop_delays`: from the receipt of the last strike to the automatic stop, where the event is stored.
    """

    agents: tuple[Row, ...] = ()
    agent_count: int = 0
    agents_without_model_or_version: int = 0
    agents_without_scope: int = 0
    uncertified_active_agents: int = 0
    silent_agents: int = 0
    owned_agents: int = 0
    orphaned_agents: int = 0
    enforcement: str = "enforce"
    observed_agents: int = 0
    certificates: tuple[Row, ...] = ()
    certificate_count: int = 0
    certificates_at_end: int = 0
    certificates_on_hold_at_end: int = 0
    certificates_revoked_at_end: int = 0
    overlong_certificates: int = 0
    high_risk: tuple[Row, ...] = ()
    events_by_band: dict[str, int] = field(default_factory=dict)
    events_by_action: dict[str, int] = field(default_factory=dict)
    model_versions: tuple[str, ...] = ()
    verdicts: dict[str, int] = field(default_factory=dict)
    verdicts_by: dict[str, int] = field(default_factory=dict)
    review_delays: Spread | None = None
    stop_delays: Spread | None = None
    unlinked_transactions: int = 0
    trend_span: str = "day"
    trend: tuple[Row, ...] = ()
    oversight: tuple[Row, ...] = ()
    acts: dict[str, dict[str, int]] = field(default_factory=dict)
    human_interventions: int = 0
    delegations: dict[str, int] = field(default_factory=dict)
    delegations_checked_against_a_scope: int = 0
    incidents: dict[str, int] = field(default_factory=dict)
    incidents_opened_by: dict[str, int] = field(default_factory=dict)
    erased_parts: int = 0
    erased_entries: int = 0
    oldest_event_at: datetime | None = None
    oldest_entry_at: datetime | None = None
    event_retention_days: int = 0
    audit_retention_days: int = 0
    retention_changes: tuple[Row, ...] = ()
    archives: tuple[Row, ...] = ()
    covered_from: datetime | None = None
    entries_from: datetime | None = None
    is_log_guarded: bool = False
    checkpoint_size: int = 0
    checkpoint_root: str = ""
    witnessed_size: int = 0
    comparison: ComparedEntries = field(default_factory=ComparedEntries)
    places_without_entry: int = 0
    whole_log: str = ""

    @property
    def event_count(self) -> int:
        return sum(self.events_by_band.values())

    @property
    def entry_count(self) -> int:
        return sum(sum(by.values()) for by in self.acts.values())

    @property
    def complete_since(self) -> datetime | None:
        """The time to which the events and the audit entries stored both reach back."""
        return max(filter(None, (self.oldest_event_at, self.oldest_entry_at)), default=None)

    def audited(self, action: str) -> int:
        """Return the number of audit entries of an action."""
        return sum(self.acts.get(action, {}).values())

    def actors(self, *actions: str) -> dict[str, int]:
        """Return how many audit entries of these actions each kind of actor has; of all without any."""
        kinds = [self.acts.get(action, {}) for action in actions or self.acts]
        return {kind: sum(by.get(kind, 0) for by in kinds) for kind in ActorKind.values}

    @property
    def stop_count(self) -> int:
        return self.audited("agent.high_risk")

    @property
    def high_risk_count(self) -> int:
        return self.events_by_band.get("high", 0)

    @property
    def transaction_count(self) -> int:
        names = ("transaction_initiated", "transaction_anomaly")
        return sum(self.events_by_action.get(name, 0) for name in names)
