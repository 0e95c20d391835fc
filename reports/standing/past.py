"""An agent as it stood at a moment, by its row, its certificates and the audit log."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from django.db.models import Q

from agents.models import OWNER_ROLES, Agent
from auditlog.models import AuditEntry
from auditlog.querysets import AuditEntryQuerySet
from auditlog.vocabulary import AuditAction
from certificates.models import Certificate, EndedHold, ValidityStatus
from certificates.public.verification import validity_at
from certificates.querysets import HOLD
from reports.content.facts import Frame
from reports.content.kept import entries_from

ON_HOLD: Final = "on_hold"
MOVES: Final = (
    *(AuditAction.AGENT_CREATED, AuditAction.AGENT_ACTIVATED, AuditAction.AGENT_SUSPENDED),
    *(AuditAction.AGENT_REINSTATED, AuditAction.AGENT_RETIRED),
)
"""The entries that tell of an agent's status."""
CLAIMS: Final = {"model": "model", "version": "model_version", "model_hash": "model_hash"}
"""The members that a certificate states, with its claims."""
COLUMNS: Final = {**{name: name for name in ("name", *CLAIMS)}, "permitted_actions": "metadata"}
"""The members that only change with a column, which audit entries of changes name."""
MEMBERS: Final = (*COLUMNS, *OWNER_ROLES, "status")


@dataclass(frozen=True)
class PastAgent:
    """An agent as it stood; `known` lacks what of `MEMBERS` neither rows nor audit entries tell any more.

    `certificate_status` is a `ValidityStatus`, or `on_hold`, and `revoked_at` when the hold began, too.
    `reinstated_at`: earlier strikes did not count.
    """

    known: dict[str, Any]
    certificate: Certificate | None
    certificate_status: str | None
    revoked_at: datetime | None
    reinstated_at: datetime | None


def past_agent(agent: Agent, frame: Frame) -> PastAgent:
    """Return the agent as it stood at the end of the frame's period; its row is as of `generated_at`.

    Its permitted actions are those that the certificate states, before the first one those of the profile.
    """
    at, known = frame.end, _profile(agent, frame)
    latest = Certificate.objects.for_tenant(agent.tenant_id).of_agent(agent.id).filter(issued_at__lte=at)
    if (certificate := latest.order_by("-issued_at", "-id").first()) is not None:
        claims = certificate.claims or {}
        known |= {name: claims[claim] for name, claim in CLAIMS.items() if claim in claims}
        known["permitted_actions"] = claims.get("permitted_actions")
    status: str | None = agent.status
    reinstated_at = agent.reinstated_at
    if at < agent.status_changed_at:
        last = _entries(agent, *MOVES).filter(created_at__lte=at).order_by("-created_at", "-id").first()
        told = last.metadata if last and last.affected_id and last.metadata else {}
        status = told.get("status")
    if reinstated_at is not None and reinstated_at > at:
        cleared = _entries(agent, AuditAction.AGENT_REINSTATED).filter(metadata__strikes_cleared__gt=0)
        times = cleared.filter(created_at__lte=at).order_by("-created_at", "-id")
        reinstated_at = times.values_list("created_at", flat=True).first()
    known |= {"status": status} if status else {}
    stands, revoked_at = _certificate_status(certificate, at) if certificate else (None, None)
    return PastAgent(known, certificate, stands, revoked_at, reinstated_at)


def _entries(agent: Agent, *actions: AuditAction) -> AuditEntryQuerySet:
    """Return the agent's entries, and those that may be its: erased ones, which name nobody."""
    own = AuditEntry.objects.for_tenant(agent.tenant_id).filter(event_type__in=actions)
    return own.filter(Q(affected_id=str(agent.id)) | Q(affected_id=None))


def _profile(agent: Agent, frame: Frame) -> dict[str, Any]:
    """Return what the row says of the end of the period: what was not changed since, and the owners then."""
    owners = {role: getattr(agent, role) for role in OWNER_ROLES}
    changes: list[dict[str, Any]] = []
    if frame.end < agent.updated_at:
        later = _entries(agent, AuditAction.AGENT_UPDATED).filter(created_at__gt=frame.end)
        rows = list(later.order_by("-created_at", "-id").values_list("affected_id", "metadata"))
        changes = [told for affected_id, told in rows if affected_id and told]
        is_dropped = entries_from(replace(frame, start=frame.end, end=frame.generated_at)) is not None
        if is_dropped or len(changes) < len(rows):
            return {}
    for told in changes:
        owners |= {role: told[role]["before"] for role in OWNER_ROLES if role in told}
    changed = {name for told in changes for name in told["changed"]}
    return {name: getattr(agent, name) for name in COLUMNS if COLUMNS[name] not in changed} | owners


def _certificate_status(certificate: Certificate, at: datetime) -> tuple[str, datetime | None]:
    standing = validity_at(certificate, at).standing
    if standing != ValidityStatus.REVOKED:
        return standing.value, None
    past = EndedHold.objects.filter(certificate=certificate, held_at__lte=at, ended_at__gt=at).first()
    is_held = past is not None or certificate.revocation_code == HOLD
    status = ON_HOLD if is_held and at <= certificate.expires_at else standing.value
    return status, past.held_at if past else certificate.revoked_at
