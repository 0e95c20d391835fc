"""Issue a token for a request.

The HSM signs before the transaction, and so does not hold up the lock on the agent. All checks are repeated
under that lock, so that no token is issued after a revocation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from agents.errors import AgentNotFound
from agents.models import Agent
from auditlog import services as auditlog
from auditlog.vocabulary import AuditAction
from certificates.models import Certificate
from compliance.core import environments
from compliance.stores import sql
from compliance.stores.sql import Question
from delegation import errors
from delegation.issued import status_lists
from delegation.issuing import applications
from delegation.issuing.applications import RequestRows, TokenApplication
from delegation.jose import jws, tokens
from delegation.jose.tokens import Delegation
from delegation.models import IssuedToken, TokenKey
from delegation.standing import Standing, standings
from delegation.token_keys import keyring, keys


@dataclass(frozen=True)
class IssuedDelegation:
    token: str
    delegation: Delegation


class _KeyReplaced(Exception):
    """Another key signs by now; `active_keys` holds it, if there is one."""

    def __init__(self, active_keys: Sequence[TokenKey]) -> None:
        super().__init__()
        self.active_keys = active_keys


def issue(asked: TokenApplication) -> IssuedDelegation:
    """Issue the token, outside a transaction; waits for the agent. Raises: ServiceError, Django's errors."""
    found = sql.read_again(lambda: _read(asked))
    asked = applications.with_scope(asked, found)
    applications.check(asked, found)
    return _issue(asked, found)


def _issue(asked: TokenApplication, found: RequestRows) -> IssuedDelegation:
    key, index = keys.the_active(found.active_keys), status_lists.next_index()
    delegation = applications.delegation_for(asked, found, status_index=index)
    token = jws.sign(tokens.to_claims(delegation), kid=key.kid, key=keys.private_half(key))
    try:
        with environments.atomic():
            _store(asked, delegation, index, key, found)
    except _KeyReplaced as replaced:
        return _issue(asked, replace(found, active_keys=replaced.active_keys))
    keyring.add(key)
    return IssuedDelegation(token, delegation)


def _store(
    asked: TokenApplication, delegation: Delegation, status_index: int, key: TokenKey, known: RequestRows
) -> None:
    """Lock the agent, decide again by rows that may have changed since the token was signed, and write.

    Raises: ServiceError; _KeyReplaced if the key may have been withdrawn while the lock was awaited.
    """
    found = _read(asked, known=known)
    if key not in found.active_keys:
        raise _KeyReplaced(found.active_keys)
    applications.check(asked, found)
    if found.serial_number != delegation.certificate_serial:
        raise errors.CertificateDoesNotCount()
    row = row_of(asked.tenant_id, delegation, status_index=status_index)
    with sql.pipelined():
        sql.insert(row)
        auditlog.record(
            tenant_id=asked.tenant_id,
            action=AuditAction.DELEGATION_ISSUED,
            affected_id=asked.agent_id,
            description=f"Delegation to {row.principal} issued by agent {found.agent.name}",
            metadata=_audited(row, delegation, key, found),
            actor=asked.actor,
            now=asked.now,
        )


def _read(asked: TokenApplication, *, known: RequestRows | None = None) -> RequestRows:
    """Read the rows of a request. Raises: AgentNotFound, also for another tenant's agent.

    With `known`, what was read before, in a transaction: all else is read after the issuing agent is locked
    and the tokens behind the parent, so that none of them is revoked before the transaction ends.
    """
    agent = (asked.tenant_id, asked.agent_id)
    agents, *_, certificates, active_keys = sql.read_together(
        (Agent, f"WHERE tenant_id = %s AND id = %s {'FOR NO KEY UPDATE' if known else ''}", agent),
        *(_locks(asked.parent, known.standing) if asked.parent and known and known.standing else ()),
        (
            Certificate,
            "WHERE tenant_id = %s AND agent_id = %s ORDER BY issued_at DESC, id DESC LIMIT 1",
            agent,
        ),
        keys.ACTIVE,
    )
    if not agents:
        raise AgentNotFound()
    (standing,) = standings([asked.parent], now=asked.now) if asked.parent else (None,)
    return RequestRows(agents[0], certificates[0] if certificates else None, standing, active_keys)


def _locks(parent: Delegation, standing: Standing) -> list[Question]:
    """Return the locks of the tokens behind a parent, each of one tenant's rows: they lie on one node."""
    of_tenants: dict[UUID, list[UUID]] = {}
    for one, tenant_id in zip(parent.lineage, standing.tenants, strict=True):
        if tenant_id is not None:
            of_tenants.setdefault(tenant_id, []).append(one.token_id)
    condition = "WHERE tenant_id = %s AND id = ANY(%s::uuid[]) ORDER BY id FOR SHARE"
    return [(IssuedToken, condition, (tenant, sql.array(ids))) for tenant, ids in of_tenants.items()]


def row_of(tenant_id: UUID, delegation: Delegation, *, status_index: int) -> IssuedToken:
    """The row of a token, not saved."""
    ancestors, subject = [one.token_id for one in delegation.via], delegation.subject_identifier
    return IssuedToken(
        id=delegation.token_id,
        tenant_id=tenant_id,
        agent_id=delegation.agent_id,
        certificate_serial=delegation.certificate_serial,
        parent_token_id=ancestors[-1] if ancestors else None,
        ancestor_ids=ancestors,
        lineage_agent_ids=[one.agent_id for one in delegation.lineage],
        lineage_serials=[one.certificate_serial for one in delegation.lineage],
        chain=tokens.shown_chain(delegation.chain),
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


def _audited(row: IssuedToken, delegation: Delegation, key: TokenKey, found: RequestRows) -> dict[str, Any]:
    """The metadata of an issued token's audit entry."""
    same = ("principal", "chain", "scope", "audience", "certificate_serial", "root_issuer", "root_subject")
    return {
        **{name: getattr(row, name) for name in (*same, "bound_to")},
        "agent_id": str(row.agent_id),
        "token_id": str(row.id),
        "parent_token_id": str(row.parent_token_id) if row.parent_token_id else None,
        "scope_checked": found.permitted_actions is not None,
        "key_id": key.kid,
        "expires_at": row.expires_at.isoformat(),
        "root_assurance": delegation.root_assurance.value,
    }
