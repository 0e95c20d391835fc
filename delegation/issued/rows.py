"""The rows of issued tokens: written with the token, deleted once it has long expired."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings

from compliance.core import environments
from delegation import errors
from delegation.issued import status_entries
from delegation.jose.tokens import (
    ChainActor,
    ChainActorType,
    Confirmation,
    Delegation,
    Delegator,
    SubjectIdentifier,
    shown_chain,
)
from delegation.models import IssuedToken
from delegation.standing_rule import revocation_fault

KEPT_AFTER_EXPIRY: Final = timedelta(days=7)
SWEPT_AT_ONCE: Final = 1_000


def row_of(tenant_id: UUID, delegation: Delegation) -> IssuedToken:
    """The row of a token, not saved; an older token, whose claims name no status, takes a number now."""
    ancestors, subject = ancestor_ids(delegation), delegation.subject_identifier
    status = delegation.status
    return IssuedToken(
        id=delegation.token_id,
        tenant_id=tenant_id,
        agent_id=delegation.agent_id,
        certificate_serial=delegation.certificate_serial,
        parent_token_id=ancestors[-1] if ancestors else None,
        ancestor_ids=ancestors,
        lineage_agent_ids=[one.agent_id for one in delegation.lineage],
        lineage_serials=[one.certificate_serial for one in delegation.lineage],
        chain=shown_chain(delegation.chain),
        principal=delegation.principal,
        scope=delegation.scope,
        audience=delegation.audience,
        root_issuer=subject.issuer if subject else None,
        root_subject=subject.subject if subject else None,
        bound_to=delegation.bound_to,
        status_index=status_entries.index_of(status) if status else status_entries.next_index(),
        issued_at=delegation.issued,
        expires_at=delegation.expires,
    )


def delegation_of(row: IssuedToken) -> Delegation:
    """Rebuild a token's claims from its row; ancestors whose ids the token did not name have none here."""
    unnamed = len(row.lineage_agent_ids) - len(row.ancestor_ids) - 1
    token_ids = [*[None] * unnamed, *row.ancestor_ids]
    return Delegation.of(
        tuple(ChainActor(actor["sub"], ChainActorType(actor["type"])) for actor in row.chain),
        issuer=settings.TOKEN_ISSUER,
        environment=environments.current().value,
        token_id=row.id,
        agent_id=row.agent_id,
        issued_at=int(row.issued_at.timestamp()),
        not_before=int(row.issued_at.timestamp()),
        expires_at=int(row.expires_at.timestamp()),
        scope=row.scope,
        audience=row.audience,
        certificate_serial=row.certificate_serial,
        via=tuple(map(Delegator, row.lineage_agent_ids, row.lineage_serials, token_ids)),
        confirmation=Confirmation(row.bound_to) if row.bound_to else None,
        subject_identifier=SubjectIdentifier(row.root_issuer, row.root_subject or "")
        if row.root_issuer
        else None,
        status=status_entries.status_at(row.status_index),
    )


def ancestor_ids(delegation: Delegation) -> list[UUID]:
    """The ids of the tokens that a token came of, oldest first; older tokens name none."""
    return [one.token_id for one in delegation.lineage[:-1] if one.token_id is not None]


def check_unrevoked(parent: Delegation, known: Mapping[UUID, IssuedToken]) -> None:
    """Raise `ParentTokenRevoked` if one of the known rows, a parent's and its ancestors', is revoked.

    Raises `ParentTokenRejected` for a parent that should have a row and has none.
    """
    if parent.status is not None and parent.token_id not in known:
        raise errors.ParentTokenRejected()
    if revocation_fault([row.revoked_at is not None for row in known.values()]):
        raise errors.ParentTokenRevoked()


def delete_expired(*, now: datetime) -> int:
    """Delete rows of tokens that expired more than `KEPT_AFTER_EXPIRY` ago; return how many, a batch."""
    old = IssuedToken.objects.filter(expires_at__lt=now - KEPT_AFTER_EXPIRY)
    batch = old.order_by("expires_at", "id").values_list("id", flat=True)[:SWEPT_AT_ONCE]
    return IssuedToken.objects.filter(id__in=list(batch)).delete()[0]
