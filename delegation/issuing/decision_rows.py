"""The rows by which requests for tokens are granted or refused, read together for all requests of a group."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

from agents.errors import AgentNotFound
from agents.models import Agent
from certificates.models import Certificate
from compliance.stores import sql
from compliance.stores.sql import Question
from delegation.jose.tokens import Delegation
from delegation.models import IssuedToken, TokenKey
from delegation.standing_rule import NotStanding, delegator_fault
from delegation.token_keys import keys

_BY_ID: Final = "WHERE id = ANY(%s::uuid[]) ORDER BY id"
_OF_TENANT: Final = "WHERE tenant_id = %s AND id = ANY(%s::uuid[]) ORDER BY id"
_LATEST_OF_EACH: Final = f"""
WHERE (tenant_id, id) IN (
    SELECT agent.tenant_id, latest.id FROM {Agent._meta.db_table} AS agent
    CROSS JOIN LATERAL (
        SELECT certificate.id FROM {Certificate._meta.db_table} AS certificate
        WHERE certificate.tenant_id = agent.tenant_id AND certificate.agent_id = agent.id
        ORDER BY certificate.issued_at DESC, certificate.id DESC LIMIT 1
    ) AS latest
    WHERE agent.id = ANY(%s::uuid[]))
"""  # noqa: S608  (a name of ours)


class Locking(StrEnum):
    """How the rows of the issuing agents are locked until the transaction ends; the value is SQL.

    A transaction that locks several agents takes only the free ones, in the order of ids, and so waits for no
    other transaction while it holds a lock.
    """

    WAIT = " FOR NO KEY UPDATE"
    FREE_ONES = " FOR NO KEY UPDATE SKIP LOCKED"


class AgentAndCertificate(NamedTuple):
    """An agent, and its latest certificate in any state, if it ever had one."""

    agent: Agent
    certificate: Certificate | None

    def fault(self, named_serial: str | None, now: datetime) -> NotStanding | None:
        """Why the agent no longer stands behind a token that names this serial number; None if it does."""
        certificate = self.certificate
        return delegator_fault(
            agent_status=self.agent.status,
            serial_number=certificate.serial_number if certificate else None,
            certificate_status=certificate.status_at(now) if certificate else None,
            named_serial=named_serial,
        )


class RequestRows(NamedTuple):
    """The rows by which one request is granted or refused.

    `behind` holds the agents behind the parent token, of any tenant, by id, and `tokens` the parent and its
    ancestors; both are empty without a parent.
    """

    issuer: AgentAndCertificate
    behind: Mapping[UUID, AgentAndCertificate]
    tokens: Mapping[UUID, IssuedToken]


class WantedRows(NamedTuple):
    """Names the rows that one request needs: its issuing agent's, and those of its parent token, if any."""

    tenant_id: UUID
    agent_id: UUID
    parent: Delegation | None


@dataclass(frozen=True)
class GroupRows:
    """The rows for a group of requests; `active_keys` holds the token key that signs, if there is one."""

    issuers: Mapping[UUID, AgentAndCertificate]
    behind: Mapping[UUID, AgentAndCertificate]
    tokens: Mapping[UUID, IssuedToken]
    active_keys: Sequence[TokenKey]

    def of(self, *, tenant_id: UUID, agent_id: UUID | None, parent: Delegation | None) -> RequestRows:
        """The rows of one request. Raises: AgentNotFound, also for another tenant's agent."""
        issuer = self.issuers.get(agent_id) if agent_id else None
        if issuer is None or issuer.agent.tenant_id != tenant_id:
            raise AgentNotFound()
        if parent is None:
            return RequestRows(issuer, {}, {})
        return RequestRows(
            issuer, self.behind, {one: self.tokens[one] for one in _ids(parent) & self.tokens.keys()}
        )


def read(wanted: Sequence[WantedRows]) -> GroupRows:
    """Read the rows of all requests in one round trip."""
    return _read(wanted, [(Agent, _BY_ID, (sql.array({one.agent_id for one in wanted}),))])


def read_locked(wanted: Sequence[WantedRows], *, locking: Locking, known: GroupRows) -> GroupRows:
    """As `read`, in a transaction: all other rows are read after the issuing agents are locked.

    `known` is what was read before: the tokens in it are locked too, so that none of them is revoked before
    the transaction ends. Each statement locks rows of one tenant, which lie on one node of a cluster.
    """
    agents = _by_tenant((one.tenant_id, one.agent_id) for one in wanted)
    tokens = _by_tenant((one.tenant_id, one.id) for one in known.tokens.values())
    return _read(
        wanted,
        [(Agent, f"{_OF_TENANT}{locking.value}", (tenant, ids)) for tenant, ids in agents.items()],
        [(IssuedToken, f"{_OF_TENANT} FOR SHARE", (tenant, ids)) for tenant, ids in tokens.items()],
    )


def _read(
    wanted: Sequence[WantedRows], of_issuers: Sequence[Question], locks: Sequence[Question] = ()
) -> GroupRows:
    parents = [one.parent for one in wanted if one.parent is not None]
    behind = {one.agent_id for parent in parents for one in parent.lineage}
    issuers = {one.agent_id for one in wanted}
    tokens = sorted({one for parent in parents for one in _ids(parent)})
    of_parents: list[Question] = [
        (IssuedToken, _BY_ID, (sql.array(tokens),)),
        (Agent, _BY_ID, (sql.array(behind),)),
    ]
    found = sql.read_together(
        *of_issuers,
        *locks,
        *(of_parents if parents else ()),
        (Certificate, _LATEST_OF_EACH, (sql.array(issuers | behind),)),
        keys.ACTIVE,
    )
    certificates, active_keys = found[-2:]
    latest = {certificate.agent_id: certificate for certificate in certificates}
    issued, others = found[-4:-2] if parents else ([], [])
    agents = [agent for rows in found[: len(of_issuers)] for agent in rows]
    return GroupRows(
        _by_id(agents, latest), _by_id(others, latest), {token.id: token for token in issued}, active_keys
    )


def _by_tenant(pairs: Iterable[tuple[UUID, UUID]]) -> dict[UUID, str]:
    """Return the ids of each tenant as an array of PostgreSQL."""
    ids: dict[UUID, set[UUID]] = {}
    for tenant_id, one in pairs:
        ids.setdefault(tenant_id, set()).add(one)
    return {tenant_id: sql.array(sorted(found)) for tenant_id, found in ids.items()}


def _by_id(agents: Iterable[Agent], latest: Mapping[UUID, Certificate]) -> dict[UUID, AgentAndCertificate]:
    return {agent.id: AgentAndCertificate(agent, latest.get(agent.id)) for agent in agents}


def _ids(parent: Delegation) -> set[UUID]:
    """The ids of a parent token and its ancestors; older tokens name none."""
    return {one.token_id for one in parent.lineage if one.token_id is not None}
