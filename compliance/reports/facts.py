"""What a report knows: plain values, gathered from rows by `evidence` and judged by the control modules."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID


@dataclass(frozen=True)
class Frame:
    """What the report is about: [start, end) as seen at `generated_at`."""

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
        """The end, or the moment of generation if the period has not ended."""
        return min(self.end, self.generated_at)


@dataclass(frozen=True)
class AgentFact:
    """An agent and the events received from it in the period, counted by risk band."""

    id: UUID
    name: str
    model: str | None
    version: str | None
    model_hash: str
    status: str
    registered_at: datetime
    permitted_actions: tuple[str, ...] | None
    has_financial_limits: bool
    risk_score: float
    is_certified: bool
    events: dict[str, int] = field(default_factory=dict)
    last_event_at: datetime | None = None

    @property
    def event_count(self) -> int:
        return sum(self.events.values())


@dataclass(frozen=True)
class CertificateFact:
    """A certificate that was valid, issued or revoked in the period.

    `delay` is the time from the last high-risk event before the revocation to the revocation; None when
    none came shortly before.
    """

    serial_number: str
    agent_id: UUID
    status: str
    issued_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    reason: str | None
    delay: timedelta | None


@dataclass(frozen=True)
class HighRiskFact:
    """One high-risk event; `reasons` names what weighed most, the strongest first."""

    id: UUID
    agent_id: UUID
    action_type: str
    risk_score: float
    occurred_at: datetime
    received_at: datetime
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class OversightFact:
    """An intervention in the audit log: what, by whom, when, about what."""

    at: datetime
    what: str
    actor_type: str
    actor_id: str
    subject: str
    description: str


@dataclass(frozen=True)
class TrendPoint:
    """Events received in the span that begins `at`, by risk band."""

    at: datetime
    bands: dict[str, int]


@dataclass(frozen=True)
class DelegationFacts:
    """Delegation tokens issued in the period."""

    total: int = 0
    rooted_in_a_human: int = 0
    checked_against_a_scope: int = 0


@dataclass(frozen=True)
class Facts:
    """All evidence of one report. Lists are the newest of their kind, at most `LISTED`; counts are whole."""

    agents: tuple[AgentFact, ...] = ()
    agent_count: int = 0
    agents_without_model_or_version: int = 0
    agents_without_scope: int = 0
    agents_without_limits: int = 0
    uncertified_active_agents: int = 0
    certificates: tuple[CertificateFact, ...] = ()
    certificate_count: int = 0
    revocation_count: int = 0
    overlong_certificates: int = 0
    high_risk: tuple[HighRiskFact, ...] = ()
    events_by_band: dict[str, int] = field(default_factory=dict)
    events_by_action: dict[str, int] = field(default_factory=dict)
    unlinked_transactions: int = 0
    trend_span: str = "day"
    trend: tuple[TrendPoint, ...] = ()
    oversight: tuple[OversightFact, ...] = ()
    audit_by_type: dict[str, int] = field(default_factory=dict)
    human_interventions: int = 0
    delegations: DelegationFacts = field(default_factory=DelegationFacts)
    oldest_event_at: datetime | None = None
    oldest_entry_at: datetime | None = None
    is_log_guarded: bool = False

    @property
    def event_count(self) -> int:
        return sum(self.events_by_band.values())

    @property
    def high_risk_count(self) -> int:
        return self.events_by_band.get("high", 0)

    @property
    def transaction_count(self) -> int:
        return sum(
            self.events_by_action.get(name, 0) for name in ("transaction_initiated", "transaction_anomaly")
        )
