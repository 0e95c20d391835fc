"""Open an approval, wait for its decision, decide on it, use its receipt once, and end what has expired."""

import hashlib
import secrets
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from agents import mailing
from agents.models import Agent, AgentDid
from auditlog import services as auditlog
from auditlog.vocabulary import OWNER, Actor, ActorKind, AuditAction
from certificates.models import Certificate, CertificateStatus
from compliance.console.addresses import prefix_of
from compliance.core import environments
from compliance.core.identifiers import new_id
from compliance.core.shares import AllTaken, SharedSlots
from compliance.stores import sweeps
from gateway.approvals import receipts
from gateway.approvals.errors import (
    ApprovalRefused,
    NotDecidedByKey,
    NotTheOwner,
    RefusedReason,
    TooManyPending,
    TooManyWait,
)
from gateway.approvals.models import Approval, ApprovalStatus, DeciderKind
from gateway.approvals.receipts import Receipt
from webhooks.publishing import publish
from webhooks.vocabulary import EventName

LONGEST_WAIT: Final = 30
LOOK_SECONDS: Final = 0.1
SLOTS: Final = SharedSlots(max(1, settings.WEB_THREADS // 4))
"""Of one web process, which serves everything else with the threads that are left."""
MOST_PENDING: Final = 20
"""How many approvals of one agent may wait: more would bury the others in the inbox."""
SWEPT_AT_ONCE: Final = 500
SWEEP: Final = Actor.system("approvals.sweep")
RECORDED: Final = ("action_hash", "risk_score", "risk_band", "decided_by", "note")
REPLACED: Final = "Replaced: the act was asked about at a higher risk."
OWNER_TEXT: Final = """The agent asks whether it may do one act:

    {action}{risk}

See the details and decide, until {expires:%Y-%m-%d %H:%M} UTC:

{address}

The link decides once. Do not forward it: who opens it can decide in your name.
"""


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

    Each type of action is asked about by itself; an approval that shows people a lower band is replaced.
    Raises AgentNotFound, TooManyPending, `ApprovalRefused` (agent_not_active), and `Invalid` for details
    without an RFC 8785 form.
    """
    digest = receipts.action_hash(action_name, details)
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        own = Approval.objects.for_tenant(tenant_id).filter(agent_id=agent.id)
        for same in own.filter(status=ApprovalStatus.PENDING, action_hash=digest).locked():
            if same.status_at(now) is ApprovalStatus.EXPIRED:
                _expire(same, "expired", SWEEP, now)
            elif same.shows(action_type, risk_band):
                return same
            elif same.action_type == action_type:
                same.note = REPLACED
                _expire(same, "replaced", actor, now)
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
        _ask_owner(approval, agent, now)
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
    unless a person decides, `NotTheOwner` for an owner by a link who is that no more, `ApprovalRefused`
    (already_decided, expired, agent_not_active), and 503 errors.
    """
    if actor.kind is not ActorKind.PERSON:
        raise NotDecidedByKey()
    own = Approval.objects.for_tenant(tenant_id)
    approval = own.find(approval_id)
    agents = Agent.objects.for_tenant(tenant_id)
    _check_decidable(approval, agents.find(approval.agent_id), actor, approved, now)
    jti = new_id() if approved else None
    receipt = _signed(approval, jti, actor, now) if jti else None
    with environments.atomic():
        agent = agents.locked().find(approval.agent_id)
        approval = own.locked().find(approval_id)
        _check_decidable(approval, agent, actor, approved, now)
        approval.status = ApprovalStatus.APPROVED if approved else ApprovalStatus.DENIED
        approval.decided_at, approval.decided_by, approval.decided_by_kind = now, actor.id, _kind(actor)
        approval.note, approval.jti, approval.receipt = note, jti, receipt
        decided = ["status", "decided_at", "decided_by", "decided_by_kind", "note", "jti", "receipt"]
        approval.save(update_fields=decided)
        _record(approval, AuditAction.APPROVAL_DECIDED, approval.status, actor, now)
        said = {name: getattr(approval, name) for name in ("status", "decided_by", "decided_at", "note")}
        _announce(approval, EventName.APPROVAL_DECIDED, now, **said)
    return approval


def asked_by_link(approval_id: UUID, token: str) -> Approval | None:
    """Return the approval, whatever became of it, whose owner was sent the link with this secret.

    None too once the agent has another owner: what it asks for is not theirs to see.
    """
    found = Approval.objects.select_related("tenant").filter(id=approval_id).first()
    if found is None or not compare_digest(found.owner_digest or "", _digest(token)):
        return None
    agent = Agent.objects.for_tenant(found.tenant_id).find(found.agent_id)
    return found if _is_owned(agent, found) else None


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
            raise ApprovalRefused(RefusedReason.NOT_SHOWN)
        approval.status, approval.used_at = ApprovalStatus.USED, now
        approval.save(update_fields=["status", "used_at"])
        _record(approval, AuditAction.APPROVAL_USED, "used", Actor.agent(agent.id), now)
    return approval


def sweep(*, now: datetime) -> int:
    """Mark what has expired, and delete what ended long ago; return how many were marked."""
    Approval.objects.old(now).delete()
    overdue = Approval.objects.overdue(now).order_by("expires_at", "id")
    return sweeps.each(overdue.values_list("id", flat=True)[:SWEPT_AT_ONCE], lambda one: _sweep_one(one, now))


def _ask_owner(approval: Approval, agent: Agent, now: datetime) -> None:
    """Have a link mailed to the agent's owner that decides on the approval, which is not stored yet."""
    token = secrets.token_urlsafe(32)
    path = f"{prefix_of(environments.current())}approve/{approval.id}/{token}/"
    text = OWNER_TEXT.format(
        action=mailing.line(approval.action_name),
        risk=f" (risk: {approval.risk_band})" if approval.risk_band else "",
        expires=approval.expires_at,
        address=f"{settings.BASE_URL}{path}",
    )
    to, subject = [agent.owner_email or ""], f"May {agent.name} do this? Decide as its owner"
    if agent.owner_email and mailing.tell(to=to, agents=[agent], subject=subject, text=text, now=now):
        approval.owner_email, approval.owner_digest = agent.owner_email, _digest(token)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _kind(actor: Actor) -> DeciderKind:
    return DeciderKind.OWNER if actor.id.startswith(OWNER) else DeciderKind.PERSON


def _is_owned(agent: Agent, approval: Approval) -> bool:
    """Return whether the person who was sent the link still owns the agent; letter case does not matter."""
    asked, owner = approval.owner_email, agent.owner_email
    return bool(asked and owner and asked.casefold() == owner.casefold())


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
        _expire(found, "expired", SWEEP, now)
    return 1


def _expire(approval: Approval, verb: str, actor: Actor, now: datetime) -> None:
    approval.status = ApprovalStatus.EXPIRED
    approval.save(update_fields=["status", "note"])
    _record(approval, AuditAction.APPROVAL_EXPIRED, verb, actor, now)


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


def _check_decidable(approval: Approval, agent: Agent, actor: Actor, approved: bool, now: datetime) -> None:
    if _kind(actor) is DeciderKind.OWNER and not _is_owned(agent, approval):
        raise NotTheOwner()
    status = approval.status_at(now)
    if status is not ApprovalStatus.PENDING:
        is_late = status is ApprovalStatus.EXPIRED and approval.decided_at is None
        raise ApprovalRefused(RefusedReason.EXPIRED if is_late else RefusedReason.ALREADY_DECIDED)
    if approved:
        _require_active(agent, now)


def _require_active(agent: Agent, now: datetime) -> None:
    """Raise unless the agent may act: as for delegating, one that was never certified may."""
    certificate = Certificate.objects.for_tenant(agent.tenant_id).latest_of(agent)
    is_revoked = certificate is not None and certificate.status_at(now) != CertificateStatus.ACTIVE
    if is_revoked or agent.is_stopped:
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
            **{name: getattr(approval, name) for name in RECORDED},
            "status": str(approval.status),
            "decision_id": str(approval.decision_id) if approval.decision_id else None,
            "expires_at": approval.expires_at.isoformat(),
            "jti": str(approval.jti) if approval.jti else None,
        },
        actor=actor,
        now=now,
    )


def when_decided(*, tenant_id: UUID, approval_id: Any, seconds: float, now: datetime) -> Approval:
    """The approval once it is decided or has expired, at the latest after so many seconds.

    Raises: ApprovalNotFound, TooManyWait.
    """
    own = Approval.objects.for_tenant(tenant_id)
    approval = own.find(approval_id)
    longest = min(seconds, (approval.expires_at - now).total_seconds())
    if approval.status != ApprovalStatus.PENDING or longest <= 0:
        return approval
    end = time.monotonic() + longest
    try:
        slot = SLOTS.take(tenant_id)
    except AllTaken as error:
        raise TooManyWait(retry_after=1) from error
    with slot:
        while time.monotonic() < end and approval.status == ApprovalStatus.PENDING:
            time.sleep(LOOK_SECONDS)
            approval = own.find(approval_id)
    return approval
