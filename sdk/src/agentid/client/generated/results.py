"""What the service answers, as frozen records, generated from the OpenAPI description by deploy/release."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any

from agentid.client.records import Record


class Owner(Record):
    """A person who answers for an agent."""

    name: str
    email: str


class FinancialScope(Record):
    """The trading limits of an agent; amounts in US dollars."""

    max_single_trade_usd: float
    daily_limit_usd: float
    permitted_instruments: tuple[str, ...]
    permitted_venues: tuple[str, ...]
    leverage_permitted: bool
    max_leverage_ratio: float | None = None


class Agent(Record):
    """An agent: its profile, who answers for it, its DID, status and risk."""

    id: str
    tenant_id: str
    name: str
    description: str | None
    model: str | None
    model_hash: str
    version: str | None
    status: str
    owner: Owner | None
    backup_owner: Owner | None
    inbox_address: str | None
    metadata: Mapping[str, Any] | None
    financial_scope: FinancialScope | None
    agent_card: Mapping[str, Any] | None
    enforcement: str | None
    effective_enforcement: str
    alarm_budget: float | None
    effective_alarm_budget: float
    blueprint_id: str | None
    validity_days: int | None
    did: str
    dormant_at: datetime | None
    created_at: datetime
    updated_at: datetime


class UpdatedAgent(Agent):
    """An agent after `PATCH`."""

    renewal_needed_for: tuple[str, ...]


class Certificate(Record):
    """A Certificate of the interface specification; `context={"now": …}` decides its status."""

    id: str
    agent_id: str
    serial_number: str
    kms_key_arn: str
    key_storage: str
    certificate_pem: str
    status: str
    issued_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    revocation_reason: str | None
    superseded_at: datetime | None


class Attestation(Record):
    """An attestation, and the signed manifest with its digest."""

    manifest: Mapping[str, Any]
    signature: str
    public_key: str
    attestation: Mapping[str, Any]


class AgentCredential(Record):
    """A credential of an agent."""

    credential: str = field(repr=False)
    valid_until: datetime


class UsedName(Record):
    """A name that an agent used."""

    name: str
    count: int
    last_at: datetime
    permitted: bool | None


class RefusedName(Record):
    """A name that was refused."""

    name: str
    count: int
    last_at: datetime
    refused_by: str


class Usage(Record):
    """An agent's used, unused and refused actions."""

    period_start: str
    period_end: str
    permitted_actions: tuple[str, ...] | None
    used: tuple[UsedName, ...]
    unused: tuple[str, ...]
    refused: tuple[RefusedName, ...]
    is_complete: bool


class AskPolicy(Record):
    """When a person is asked before an agent acts."""

    applies_to: str
    ask_from: str
    always_ask: tuple[str, ...]
    ttl_seconds: int
    created_at: datetime
    updated_at: datetime


class Approval(Record):
    """An approval of a list."""

    id: str
    agent_id: str
    agent_name: str
    action: str
    action_type: str | None
    details: Mapping[str, Any]
    action_hash: str
    risk_score: float | None
    risk_band: str | None
    reasons: tuple[Mapping[str, Any], ...]
    decision_id: str | None
    status: str
    requested_at: datetime
    expires_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    note: str
    used_at: datetime | None


class ApprovalDetail(Approval):
    """An approval with its receipt."""

    receipt: str | None = field(repr=False)


class AuditEntry(Record):
    """An AuditLog entry of the interface specification."""

    id: str
    event_type: str
    actor_type: str
    actor_kind: str
    actor_id: str
    description: str | None
    affected_id: str | None
    metadata: Any
    created_at: datetime


class Consistency(Record):
    """A consistency proof; `hashes` in base64, in the order of RFC 6962 §2.1.2."""

    from_size: int
    to_size: int
    hashes: tuple[str, ...]


class WitnessReport(Record):
    """A witness; `name` is that of its cosignatures, `size` and `cosigned_at` are of the last one."""

    name: str
    size: int
    cosigned_at: datetime | None


class LogState(Record):
    """Sizes in entries, 0 before the first: of the tree, of the newest checkpoint, of the published one."""

    tree_size: int
    signed_size: int
    published_size: int
    quorum: str
    witnesses: tuple[WitnessReport, ...]


class AccessReview(Record):
    """A review of access."""

    id: str
    match: Mapping[str, Any]
    reviewer: str
    state: str
    agents: int
    undecided: int
    due_at: datetime
    every: str | None
    next_at: datetime | None
    started_by: str
    started_at: datetime
    overdue_at: datetime | None
    ended_at: datetime | None


class NameUse(Record):
    """How often a name was used, or refused, and when last."""

    name: str
    count: int
    last_at: datetime


class AccessReviewItem(Record):
    """An agent of a review: as it was decided on, or as it is now."""

    agent_id: str
    name: str
    status: str
    owner: str | None
    permitted_actions: tuple[str, ...] | None
    used: tuple[NameUse, ...]
    unused: tuple[str, ...]
    refused: tuple[str, ...]
    is_complete: bool
    last_active_at: datetime | None
    risk_score: float
    high_events: int
    incidents: int
    decision: str
    removed_actions: tuple[str, ...]
    note: str
    decided_by: str
    decided_at: datetime | None
    applied_at: datetime | None
    problem: str


class AccessReviewLine(Record):
    """A line of a review's record."""

    agent_id: str
    decision: str
    removed_actions: tuple[str, ...]
    decided_by: str
    decided_at: datetime
    applied_at: datetime


class AccessReviewRecord(Record):
    """A review's signed record, and the lines under its Merkle root."""

    record: str
    lines: tuple[AccessReviewLine, ...]


class AgentJwk(Record):
    """A public Ed25519 key (RFC 8037) and no more: a private half is refused."""

    kty: str
    crv: str
    x: str


class AgentKey(Record):
    """A key of an agent."""

    id: str
    agent_id: str
    thumbprint: str
    jwk: AgentJwk
    created_at: datetime
    revoked_at: datetime | None


class Authority(Record):
    role: str
    status: str
    subject: str
    common_name: str
    serial_number: str
    not_before: datetime
    not_after: datetime
    certificate_url: str
    crl_url: str
    sha256_fingerprint: str
    pem: str


class Chain(Record):
    """The CAs of an environment, the one in service first, then newest first."""

    environment: str
    chain_pem: str
    certificates: tuple[Authority, ...]


class PutAskPolicy(Record):
    """`PUT /v1/approval-policies/{applies_to}`: the whole policy; a blueprint's is the same."""

    ask_from: str
    always_ask: tuple[str, ...] = ()
    ttl_seconds: int | None = None


class Blueprint(Record):
    """A blueprint."""

    id: str
    name: str
    model: str | None
    version: str | None
    model_hash: str | None
    permitted_actions: tuple[str, ...] | None
    financial_scope: FinancialScope | None
    owner: Owner | None
    backup_owner: Owner | None
    validity_days: int | None
    alarm_budget: float | None
    ask_policy: PutAskPolicy | None
    created_at: datetime
    updated_at: datetime


class ChangedBlueprint(Blueprint):
    """A blueprint, and how many of its agents differ from it."""

    differing: int


class UnrenewedAgent(Record):
    """An agent that was not brought up to date, or whose certificate was not renewed."""

    agent_id: str
    outcome: str
    error: str


class BlueprintRenewal(Record):
    """A renewal, how far it is, and where it failed."""

    id: str
    blueprint_id: str
    matched: int
    pending: int
    renewed: int
    updated: int
    unchanged: int
    skipped: int
    failed: int
    started_at: datetime
    ended_at: datetime | None
    unrenewed: tuple[UnrenewedAgent, ...]


class Revocation(Record):
    certificate_id: str
    status: str
    revoked_at: datetime
    reason: str


class Scope(Record):
    """The scope a certificate gives its agent."""

    permitted_actions: tuple[str, ...]


class PastStanding(Record):
    """The status of the certificate at the requested time; the agent's status then is not known."""

    time: datetime
    valid: bool
    standing: str
    revoked_since: bool


class Verification(Record):
    """The identity in a certificate, and its status now."""

    serial_number: str
    status: str
    agent_id: str
    agent_status: str
    issued_at: datetime
    expires_at: datetime
    not_before: datetime
    not_after: datetime
    revoked_at: datetime | None
    revocation_reason: str | None
    operator: str
    did: str
    model: str | None
    model_version: str | None
    model_hash: str | None
    permitted_actions: tuple[str, ...]
    scope: Scope
    scope_declared: bool
    risk_score: float
    risk_band: str
    environment: str
    at: PastStanding | None = None


class AuthzenConfiguration(Record):
    policy_decision_point: str
    access_evaluation_endpoint: str
    access_evaluations_endpoint: str


class AccessReason(Record):
    name: str
    text: str
    observed: str | None = None
    expected: str | None = None


class WaitingApproval(Record):
    id: str
    status: str
    expires_at: datetime


class EvaluationError(Record):
    status: int
    message: str


class DecisionContext(Record):
    outcome: str | None = None
    decision_id: str | None = None
    reasons: tuple[AccessReason, ...] = ()
    risk_score: float | None = None
    risk_band: str | None = None
    approval: WaitingApproval | None = None
    error: EvaluationError | None = None


class AccessDecision(Record):
    decision: bool
    context: DecisionContext


class AccessDecisions(Record):
    decision: bool | None = None
    context: DecisionContext | None = None
    evaluations: tuple[AccessDecision, ...] = ()


class ChainActor(Record):
    sub: str
    type: str


class Root(Record):
    """The root of a chain and its assurance."""

    assurance: str
    issuer: str | None = None
    subject: str | None = None
    vouched_by: str | None


class Delegation(Record):
    token: str = field(repr=False)
    chain: tuple[ChainActor, ...]
    principal: str
    scope: str
    issued_at: datetime
    expires_at: datetime
    token_id: str
    root: Root
    bound_to: str | None


class DelegationVerdict(Record):
    valid: bool
    principal: str | None = None
    chain: tuple[ChainActor, ...] = ()
    chain_display: str | None = None
    scope: str | None = None
    agent_id: str | None = None
    expires_at: datetime | None = None
    audience: str | None = None
    certificate_serial: str | None = None
    environment: str | None = None
    token_id: str | None = None
    root: Root | None = None
    bound_to: str | None = None
    reason: str | None = None


class IssuedToken(Record):
    """An issued token without its text, and how it stands now."""

    token_id: str
    agent_id: str
    certificate_serial: str | None
    parent_token_id: str | None
    principal: str
    chain: tuple[ChainActor, ...]
    scope: str
    audience: str | None
    root: Root
    bound_to: str | None
    state: str
    reason: str | None
    issued_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    revocation_reason: str | None


class BehaviorEvent(Record):
    """A BehaviorEvent of the interface specification."""

    id: str
    agent_id: str
    action_type: str
    risk_score: float
    risk_band: str
    occurred_at: datetime
    details: Mapping[str, Any]


class ScoreReason(Record):
    """One contribution to a score; `weight` in log-odds, of a broken rule what lifts its action to 0.90."""

    name: str
    observed: str
    expected: str
    weight: float


class EventReview(Record):
    """An officer's verdict on an event."""

    id: str
    event_id: str
    verdict: str
    note: str | None
    marked: tuple[str, ...]
    reviewed_by: str
    reviewed_at: datetime


class ExplainedEvent(BehaviorEvent):
    """An event with why it scored as it did, what decided first, and what an officer made of it."""

    session_id: str | None
    chain_id: str | None
    decision_id: str | None
    received_at: datetime
    reasons: tuple[ScoreReason, ...]
    model_version: str
    review: EventReview | None


class BatchResult(Record):
    """The answer that `POST /v1/events` would have given for one event of a batch."""

    status: int
    data: BehaviorEvent | None = None
    error: str | None = None


class GatewayRoute(Record):
    """A route of a tenant's gateways."""

    id: str
    name: str
    credentials: tuple[str, ...]
    action: str | None
    audience: str | None
    highest_band: str
    root: str
    agents: str
    nonce_required: bool
    uncertified_agents: bool
    created_at: datetime
    updated_at: datetime


class TouchedAgent(Record):
    """An agent of an incident, since when and why."""

    agent_id: str
    agent_name: str
    since: datetime
    why: str


class Clock(Record):
    """A reporting clock."""

    kind: str
    state: str
    provision: str
    basis: str
    started_at: datetime | None
    due_at: datetime | None
    met_at: datetime | None


class Incident(Record):
    """An incident with its clocks."""

    reference: str
    id: str
    agent_id: str
    agent_name: str
    title: str
    cause: str
    state: str
    severity: str
    owner: str
    detected_at: datetime
    opened_at: datetime
    contained_at: datetime | None
    closed_at: datetime | None
    updated_at: datetime
    serious_harm: str
    dora_class: str
    aware_at: datetime | None
    ai_act_reported_at: datetime | None
    classified_at: datetime | None
    dora_initial_at: datetime | None
    dora_intermediate_at: datetime | None
    dora_final_at: datetime | None
    merged_into: str | None
    agents: tuple[TouchedAgent, ...]
    clocks: tuple[Clock, ...]


class TouchedCertificate(Record):
    """A certificate of an incident's agent, since when and why."""

    certificate_id: str
    serial_number: str
    agent_id: str
    since: datetime
    why: str


class TimelineEntry(Record):
    """One thing that happened."""

    id: str
    kind: str
    at: datetime
    actor_kind: str
    actor_id: str
    text: str
    event_id: str | None
    certificate_id: str | None
    serial_number: str
    data: Mapping[str, Any] | None


class IncidentDetail(Incident):
    """An incident with its clocks, its first 200 certificates and the newest 200 rows of its timeline."""

    certificates: tuple[TouchedCertificate, ...]
    timeline: tuple[TimelineEntry, ...]


class Attachment(Record):
    """A file that stays with you, by its digest."""

    name: str
    size: int
    sha256: str


class ExportedDraft(Record):
    """A frozen version of a notification."""

    id: str
    template: str
    version: int
    digest: str
    actor_kind: str
    actor_id: str
    created_at: datetime
    document: Mapping[str, Any]


class IncidentExport(Record):
    """The whole record of an incident: up to 1,000 rows of the timeline, 200 events and 50 drafts."""

    format: str
    exported_at: datetime
    environment: str
    truncated: tuple[str, ...]
    incident: Incident
    timeline: tuple[TimelineEntry, ...]
    attachments: tuple[Attachment, ...]
    agent: Mapping[str, Any]
    agents: tuple[Mapping[str, Any], ...]
    certificates: tuple[Mapping[str, Any], ...]
    events: tuple[Mapping[str, Any], ...]
    verdicts: Mapping[str, int]
    steps: tuple[Mapping[str, Any], ...]
    audit_log_size: int
    drafts: tuple[ExportedDraft, ...]


class Signature(Record):
    """A signature over the payload's canonical JSON (RFC 8785)."""

    agent_id: str
    signature: str
    algorithm: str
    certificate_serial: str
    payload_hash: str
    signed_at: datetime
    event_id: str
    jws: str | None = None


class MessageVerification(Record):
    """A `MessageVerification`; branch on `valid`."""

    valid: bool
    valid_when_signed: bool | None
    reason: str | None = None
    agent_id: str
    certificate_serial: str
    certificate_status: str
    payload_hash: str
    algorithm: str
    event_id: str | None = None


class Metadata(Record):
    """RFC 8414 §2."""

    issuer: str
    token_endpoint: str
    introspection_endpoint: str
    revocation_endpoint: str
    jwks_uri: str
    response_types_supported: tuple[str, ...]
    grant_types_supported: tuple[str, ...]
    authorization_grant_profiles_supported: tuple[str, ...]
    token_endpoint_auth_methods_supported: tuple[str, ...]
    token_endpoint_auth_signing_alg_values_supported: tuple[str, ...]
    dpop_signing_alg_values_supported: tuple[str, ...]
    introspection_endpoint_auth_methods_supported: tuple[str, ...]
    revocation_endpoint_auth_methods_supported: tuple[str, ...]
    actor_token_types_supported: tuple[str, ...]


class ActClaim(Record):
    """The current actor; earlier ones are nested in its own `act`."""

    sub: str
    sub_type: str
    act: Mapping[str, Any] | None = None


class Confirmation(Record):
    jkt: str


class SubjectIdentifier(Record):
    format: str
    iss: str
    sub: str


class Introspection(Record):
    """RFC 7662 §2.2; of a token that does not stand only `active`, false."""

    active: bool
    scope: str | None = None
    token_type: str | None = None
    exp: int | None = None
    iat: int | None = None
    nbf: int | None = None
    sub: str | None = None
    sub_type: str | None = None
    aud: str | None = None
    iss: str | None = None
    jti: str | None = None
    act: ActClaim | None = None
    cnf: Confirmation | None = None
    sub_id: SubjectIdentifier | None = None
    agent_id: str | None = None
    cert_serial: str | None = None
    env: str | None = None
    risk_band: str | None = None
    vouching_tenant: str | None = None


class TokenResponse(Record):
    """RFC 8693 §2.2.1."""

    access_token: str = field(repr=False)
    issued_token_type: str
    token_type: str
    expires_in: int
    scope: str


class ReportSchedule(Record):
    """A schedule; `next_start` begins the period that it reports next."""

    id: str
    type: str
    cadence: str
    next_start: datetime
    created_at: datetime
    ended_at: datetime | None


class OwnersReplaced(Record):
    """How many agents have another owner or backup owner now."""

    agents: int


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


class ReportDocument(Record):
    """A report's document and its digest."""

    report: Mapping[str, Any]
    digest: Mapping[str, str]


class ReportManifest(Record):
    """A report's manifest, its signature and the key that made it."""

    manifest: Mapping[str, Any]
    signature: str
    public_key: str


class Transmitter(Record):
    """Transmitter configuration metadata (SSF §7.1)."""

    spec_version: str
    issuer: str
    jwks_uri: str
    delivery_methods_supported: tuple[str, ...]
    configuration_endpoint: str
    status_endpoint: str
    verification_endpoint: str
    authorization_schemes: tuple[Mapping[str, str], ...]
    default_subjects: str


class StreamDelivery(Record):
    """The delivery of signals to the receiver."""

    method: str
    endpoint_url: str


class SignalStream(Record):
    """A stream's configuration (SSF §8.1.1)."""

    stream_id: str
    iss: str
    aud: str
    events_supported: tuple[str, ...]
    events_requested: tuple[str, ...]
    events_delivered: tuple[str, ...]
    delivery: StreamDelivery
    min_verification_interval: int
    description: str


class Polled(Record):
    """Tokens by their `jti` (RFC 8936 §2.3)."""

    sets: Mapping[str, str]
    more_available: bool


class SignalStreamStatus(Record):
    """A stream's status (SSF §8.1.2)."""

    stream_id: str
    status: str
    reason: str


class Stop(Record):
    """A stop, and how far it is."""

    id: str
    match: Mapping[str, Any]
    revoke: bool
    reason: str
    reason_code: str
    state: str
    matched: int
    stopped: int
    skipped: int
    failed: int
    released: int
    started_by: str
    started_at: datetime
    ended_at: datetime | None
    release_reason: str
    released_by: str
    released_at: datetime | None


class MatchedAgent(Record):
    """An agent that a stop would match."""

    id: str
    name: str
    status: str


class BegunStop(Record):
    """The answer to `POST /v1/stops`."""

    id: str | None
    match: Mapping[str, Any]
    revoke: bool
    reason: str
    reason_code: str
    state: str | None
    matched: int
    stopped: int
    skipped: int
    failed: int
    released: int
    started_by: str
    started_at: datetime
    ended_at: datetime | None
    release_reason: str
    released_by: str
    released_at: datetime | None
    dry_run: bool
    sample: tuple[MatchedAgent, ...]


class HaltLine(Record):
    """A line of a halt receipt."""

    agent_id: str
    serial: str | None
    stopped_at: datetime | None
    outcome: str


class HaltReceipt(Record):
    """A halt receipt and the lines under its Merkle root."""

    receipt: str = field(repr=False)
    lines: tuple[HaltLine, ...]


class TrustedIssuer(Record):
    """An issuer whose ID tokens the tenant trusts."""

    id: str
    issuer: str
    jwks_uri: str | None
    jwks: Mapping[str, Any] | None
    audiences: tuple[str, ...]
    algorithms: tuple[str, ...]
    subject_claim: str
    required_claims: Mapping[str, Any]
    max_age_seconds: int
    active: bool
    created_at: datetime
    updated_at: datetime


class TracedName(Record):
    """A name in spans."""

    id: str
    source: str
    name: str
    agent_id: str | None
    seen_at: datetime


class Webhook(Record):
    """A Webhook of the interface specification, without its secret."""

    id: str
    url: str
    events: tuple[str, ...]
    active: bool
    description: str
    format: str
    secret_hint: str
    previous_secret_until: datetime | None
    disabled_at: datetime | None
    created_at: datetime
    updated_at: datetime


class WebhookWithSecret(Webhook):
    """A Webhook with its new secret."""

    secret: str = field(repr=False)


class Attempt(Record):
    """One attempt of a delivery; `duration_ms` is null while it lasts, or if its sender died."""

    number: int
    url: str
    started_at: datetime
    duration_ms: int | None
    response_status: int | None
    response_body: str | None
    error: str | None


class Delivery(Record):
    """The delivery of an event to a webhook, with its attempts."""

    id: str
    webhook_id: str
    event_id: str
    event: str
    status: str
    trigger: str
    attempt_count: int
    max_attempts: int
    next_attempt_at: datetime | None
    created_at: datetime
    completed_at: datetime | None
    attempts: tuple[Attempt, ...]


class Recovered(Record):
    """The result of a recovery."""

    webhook_id: str
    since: datetime
    redelivered: int
