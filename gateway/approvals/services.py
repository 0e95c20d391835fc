"""Open an approval, decide on it, use its receipt once, and end what has expired."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from agents.models import Agent, AgentDid, AgentStatus
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, ActorKind, AuditAction
from certificates.models import Certificate, CertificateStatus
from compliance.core import environments
from compliance.core.identifiers import new_id
from compliance.stores import sweeps
from gateway.approvals import receipts
from gateway.approvals.errors import ApprovalRefused, NotDecidedByKey, RefusedReason, TooManyPending
from gateway.approvals.models import Approval, ApprovalStatus
from gateway.approvals.receipts import Receipt
from webhooks.publishing import publish
from webhooks.vocabulary import EventName

MOST_PENDING: Final = 20
"""How many approvals of one agent may wait: more would bury the others in the inbox."""
SHORTEST_TTL, LONGEST_TTL = 60, 86_400
"""In seconds; the longest is that of a token, for which a key stays published after it has signed."""
SWEPT_AT_ONCE: Final = 500


def open_approval(
    *,
    tenant_id: UUID,
    agent_id: UUID | str,
    action_name: str,
    action_type: str | None,
    details: Mapping[str, Any],
    risk_score: float | None,
    risk_band: str | None,
    reasons: Sequence[Any],
    ttl_seconds: int,
    decision_id: UUID | None,
    actor: Actor,
    now: datetime,
    most_pending: int = MOST_PENDING,
) -> Approval:
    """Ask people whether an agent may do an act, or return the approval that waits for the same act already.

    One that shows people another type of action, or a lower band, is replaced. Raises AgentNotFound,
    TooManyPending, `ApprovalRefused` (agent_not_active), and `Invalid` for details without an RFC 8785 form.
    """
    digest = receipts.action_hash(action_name, details)
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        own = Approval.objects.for_tenant(tenant_id).of_agent(agent.id)
        same = own.filter(status=ApprovalStatus.PENDING, action_hash=digest).locked().first()
        if same is not None:
            if same.status_at(now) is ApprovalStatus.PENDING and same.shows(action_type, risk_band):
                return same
            _expire(same, now)
        _require_active(agent, now)
        if own.pending(now).count() >= most_pending:
            raise TooManyPending()
        approval = Approval(
            tenant_id=tenant_id,
            agent_id=agent.id,
            agent_name=agent.name,
            action_name=action_name,
            action_type=action_type,
            details=dict(details),
            action_hash=digest,
            risk_score=risk_score,
            risk_band=risk_band,
            reasons=list(reasons),
            decision_id=decision_id,
            requested_by=actor.id,
            requested_at=now,
            expires_at=now + timedelta(seconds=ttl_seconds),
        )
        approval.save(force_insert=True)
        _record(approval, AuditAction.APPROVAL_REQUESTED, "requested", actor, now)
        asked = {name: getattr(approval, name) for name in ("risk_score", "risk_band", "expires_at")}
        _announce(approval, EventName.APPROVAL_REQUESTED, now, **asked)
    return approval


def decide(
    *, tenant_id: UUID, approval_id: Any, approved: bool, note: str = "", actor: Actor, now: datetime
) -> Approval:
    """Approve an act, with a receipt, or deny it; the first decision counts.

    The HSM signs before the transaction, which checks again. Raises ApprovalNotFound, `NotDecidedByKey`
    unless a person decides, `ApprovalRefused` (already_decided, expired, agent_not_active), and 503 errors.
    """
    if actor.kind is not ActorKind.PERSON:
        raise NotDecidedByKey()
    own = Approval.objects.for_tenant(tenant_id)
    approval = own.find(approval_id)
    agents = Agent.objects.for_tenant(tenant_id)
    _check_decidable(approval, agents.find(approval.agent_id), approved, now)
    jti = new_id() if approved else None
    receipt = _signed(approval, jti, actor, now) if jti else None
    with environments.atomic():
        agent = agents.locked().find(approval.agent_id)
        approval = own.locked().find(approval_id)
        _check_decidable(approval, agent, approved, now)
        approval.status = ApprovalStatus.APPROVED if approved else ApprovalStatus.DENIED
        approval.decided_at, approval.decided_by, approval.decided_by_kind = now, actor.id, actor.kind
        approval.note, approval.jti, approval.receipt = note, jti, receipt
        approval.save(
            update_fields=[
                *("status", "decided_at", "decided_by", "decided_by_kind", "note", "jti", "receipt")
            ]
        )
        _record(approval, AuditAction.APPROVAL_DECIDED, approval.status, actor, now)
        said = {name: getattr(approval, name) for name in ("status", "decided_by", "decided_at", "note")}
        _announce(approval, EventName.APPROVAL_DECIDED, now, **said)
    return approval


def consume(
    *,
    receipt: str,
    tenant_id: UUID,
    agent_id: UUID,
    action_name: str,
    details: Mapping[str, Any],
    action_type: str | None = None,
    risk_band: str | None = None,
    now: datetime,
) -> Approval:
    """Use a receipt for the act that it names: once, by the agent that it names, while that is active.

    `action_type` and `risk_band`, where they are known, must be what people saw, or a lower band.
    Raises `ApprovalRefused` with the first reason that applies, AgentNotFound, and `KeyRingUnavailable`.
    """
    claims = receipts.read(receipt)
    receipts.check(claims, agent_id=agent_id, action=action_name, details=details, now=now)
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        found = Approval.objects.for_tenant(tenant_id).filter(jti=claims.jti, agent_id=agent.id)
        approval = found.locked().first()
        if approval is None:
            raise ApprovalRefused(RefusedReason.NOT_APPROVED)
        if approval.status == ApprovalStatus.USED:
            raise ApprovalRefused(RefusedReason.ALREADY_USED)
        if approval.status_at(now) is ApprovalStatus.EXPIRED:
            raise ApprovalRefused(RefusedReason.EXPIRED)
        _require_active(agent, now)
        if not approval.shows(action_type, risk_band):
            raise ApprovalRefused(RefusedReason.WRONG_ACTION)
        approval.status, approval.used_at = ApprovalStatus.USED, now
        approval.save(update_fields=["status", "used_at"])
        _record(approval, AuditAction.APPROVAL_USED, "used", Actor.agent(agent.id), now)
    return approval


def sweep(*, now: datetime) -> int:
    """Mark what has expired, and delete what ended long ago; return how many were marked."""
    Approval.objects.old(now).delete()
    overdue = Approval.objects.overdue(now).order_by("expires_at", "id")
    return sweeps.each(overdue.values_list("id", flat=True)[:SWEPT_AT_ONCE], lambda one: _sweep_one(one, now))


def _announce(approval: Approval, name: EventName, now: datetime, **more: Any) -> None:
    """Publish what happened, without the details of the act and the receipt: `GET` has them."""
    own = {"approval_id": approval.id, "agent_id": approval.agent_id, "agent_name": approval.agent_name}
    data = {**own, "action": approval.action_name, **more}
    publish(tenant_id=approval.tenant_id, name=name, data=data, now=now)


def _sweep_one(approval_id: UUID, now: datetime) -> int:
    with environments.atomic():
        found = Approval.objects.overdue(now).filter(id=approval_id).locked().first()
        if found is None:
            return 0
        _expire(found, now)
    return 1


def _expire(approval: Approval, now: datetime) -> None:
    approval.status = ApprovalStatus.EXPIRED
    approval.save(update_fields=["status"])
    _record(approval, AuditAction.APPROVAL_EXPIRED, "expired", Actor.system("approvals.sweep"), now)


def _signed(approval: Approval, jti: UUID, actor: Actor, now: datetime) -> str:
    agent_id = approval.agent_id
    return receipts.sign(
        Receipt(
            iss=settings.TOKEN_ISSUER,
            sub=str(AgentDid(environments.current(), agent_id)),
            agent_id=agent_id,
            action=approval.action_name,
            action_hash=approval.action_hash,
            decided_by=actor.id,
            iat=int(now.timestamp()),
            exp=int(approval.expires_at.timestamp()),
            jti=jti,
            approval_id=approval.id,
            env=environments.current().value,
        )
    )


def _check_decidable(approval: Approval, agent: Agent, approved: bool, now: datetime) -> None:
    status = approval.status_at(now)
    if status is not ApprovalStatus.PENDING:
        is_late = status is ApprovalStatus.EXPIRED and approval.decided_at is None
        raise ApprovalRefused(RefusedReason.EXPIRED if is_late else RefusedReason.ALREADY_DECIDED)
    if approved:
        _require_active(agent, now)


def _require_active(agent: Agent, now: datetime) -> None:
    """Raise unless the agent may act: as for delegating, one that was never certified may."""
    own = Certificate.objects.for_tenant(agent.tenant_id).of_agent(agent.id)
    certificate = own.order_by("-issued_at", "-id").first()
    is_revoked = certificate is not None and certificate.status_at(now) != CertificateStatus.ACTIVE
    if is_revoked or agent.status in (AgentStatus.SUSPENDED, AgentStatus.RETIRED):
        raise ApprovalRefused(RefusedReason.AGENT_NOT_ACTIVE)


def _record(approval: Approval, action: AuditAction, verb: str, actor: Actor, now: datetime) -> None:
    auditlog.record(
        tenant_id=approval.tenant_id,
        action=action,
        affected_id=approval.agent_id,
        description=f"Approval of {approval.action_name} by agent {approval.agent_name} {verb}",
        metadata={
            "approval_id": str(approval.id),
            "agent_id": str(approval.agent_id),
            "action": approval.action_name,
            "action_hash": approval.action_hash,
            "status": str(approval.status),
            "risk_score": approval.risk_score,
            "risk_band": approval.risk_band,
            "decision_id": str(approval.decision_id) if approval.decision_id else None,
            "expires_at": approval.expires_at.isoformat(),
            "decided_by": approval.decided_by,
            "note": approval.note,
            "jti": str(approval.jti) if approval.jti else None,
        },
        actor=actor,
        now=now,
    )
