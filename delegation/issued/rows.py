"""The rows of issued tokens: written with the token, deleted once it has long expired."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from agents.models import Agent
from compliance.stores import sql
from delegation import errors
from delegation.issued import status_entries
from delegation.jose.tokens import Delegation
from delegation.models import IssuedToken

KEPT_AFTER_EXPIRY: Final = timedelta(days=7)
SWEPT_AT_ONCE: Final = 1_000


def write(agent: Agent, delegation: Delegation) -> IssuedToken:
    """Insert the row of a token that is being issued; needs a transaction."""
    row = row_of(agent.tenant_id, delegation)
    sql.insert(row)
    return row


def row_of(tenant_id: UUID, delegation: Delegation, *, status_index: int | None = None) -> IssuedToken:
    """The row of a token, not saved; `status_index` for an older token, whose claims name none."""
    if delegation.status is not None:
        status_index = status_entries.index_of(delegation.status)
    ancestors, subject = ancestor_ids(delegation), delegation.subject_identifier
    return IssuedToken(
        id=delegation.token_id,
        tenant_id=tenant_id,
        agent_id=delegation.agent_id,
        certificate_serial=delegation.certificate_serial,
        parent_token_id=ancestors[-1] if ancestors else None,
        ancestor_ids=ancestors,
        lineage_agent_ids=[one.agent_id for one in delegation.lineage],
        lineage_serials=[one.certificate_serial for one in delegation.lineage],
        chain=[{"sub": actor.sub, "type": actor.type.value} for actor in delegation.chain],
        principal=delegation.principal,
        scope=delegation.scope,
        audience=delegation.audience,
        root_issuer=subject.issuer if subject else None,
        root_subject=subject.subject if subject else None,
        bound_to=delegation.bound_to,
        status_index=status_index,
        issued_at=delegation.issued,
        expires_at=delegation.expires,
    )


def ancestor_ids(delegation: Delegation) -> list[UUID]:
    """The ids of the tokens that a token came of, oldest first; older tokens name none."""
    return [one.token_id for one in delegation.lineage[:-1] if one.token_id is not None]


def check_unrevoked(parent: Delegation) -> None:
    """Raise `ParentTokenRevoked` if a parent or one of its ancestors is revoked.

    Inside a transaction nobody revokes them until it ends. Raises `ParentTokenRejected` for a parent that
    should have a row and has none.
    """
    ids = [one.token_id for one in parent.lineage if one.token_id is not None]
    found = {row.id: row for row in IssuedToken.objects.shared(ids)}
    if parent.status is not None and parent.token_id not in found:
        raise errors.ParentTokenRejected()
    if any(row.revoked_at is not None for row in found.values()):
        raise errors.ParentTokenRevoked()


def delete_expired(*, now: datetime) -> int:
    """Delete rows of tokens that expired more than `KEPT_AFTER_EXPIRY` ago; return how many, a batch."""
    old = IssuedToken.objects.filter(expires_at__lt=now - KEPT_AFTER_EXPIRY)
    batch = old.order_by("expires_at", "id").values_list("id", flat=True)[:SWEPT_AT_ONCE]
    return IssuedToken.objects.filter(id__in=list(batch)).delete()[0]
