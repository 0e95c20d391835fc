"""Revocation of a token, and thereby of every token handed on from it."""

from datetime import datetime
from typing import Any
from uuid import UUID

from agents.models import Agent
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from delegation import errors
from delegation.issued import rows
from delegation.jose.tokens import Delegation
from delegation.models import IssuedToken


def revoke(*, tenant_id: UUID, token_id: Any, reason: str, actor: Actor, now: datetime) -> IssuedToken:
    """Revoke a token that an agent of the tenant issued; once revoked it stays as it is.

    Nothing is written on the tokens that came of it, of whatever tenant: they name it among their ancestors.
    Raises `IssuedTokenNotFound`.
    """
    with environments.atomic():
        row = IssuedToken.objects.for_tenant(tenant_id).locked().find(token_id)
        if row.revoked_at is None:
            _revoke(row, reason, actor, now)
    return row


def revoke_presented(
    *, tenant_id: UUID, delegation: Delegation, reason: str, actor: Actor, now: datetime
) -> IssuedToken:
    """As `revoke`, for a token whose holder shows it; raises `errors.IssuedByAnother`.

    A token from before rows were written gets its row now.
    """
    agent = Agent.objects.for_tenant(tenant_id).filter(id=delegation.agent_id).first()
    if agent is None:
        raise errors.IssuedByAnother()
    if not IssuedToken.objects.filter(id=delegation.token_id).exists():
        IssuedToken.objects.bulk_create([rows.row_of(tenant_id, delegation)], ignore_conflicts=True)
    return revoke(tenant_id=tenant_id, token_id=delegation.token_id, reason=reason, actor=actor, now=now)


def _revoke(row: IssuedToken, reason: str, actor: Actor, now: datetime) -> None:
    row.revoked_at, row.revoked_by, row.revocation_reason = now, actor.id, reason
    row.save(update_fields=["revoked_at", "revoked_by", "revocation_reason"])
    descendants = IssuedToken.objects.descending_from(row.id).unexpired(now).count()
    auditlog.record(
        tenant_id=row.tenant_id,
        action=AuditAction.DELEGATION_REVOKED,
        affected_id=row.agent_id,
        description=f"Delegation to {row.principal} revoked, and {descendants} that came of it",
        metadata={
            "token_id": str(row.id),
            "agent_id": str(row.agent_id),
            "principal": row.principal,
            "reason": reason,
            "descendants": descendants,
            "expires_at": row.expires_at.isoformat(),
        },
        actor=actor,
        now=now,
    )
