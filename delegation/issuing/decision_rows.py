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

_AGENTS: Final = "WHERE id = ANY(%s::uuid[]) ORDER BY id"
_TOKENS: Final = "WHERE id = ANY(%s::uuid[]) ORDER BY id"
_LATEST_OF_EACH: Final = f"""
WHERE id = ANY(ARRAY(
    SELECT (SELECT id FROM {Certificate._meta.db_table} AS certificate
        WHERE certificate.agent_id = asked.id ORDER BY issued_at DESC, id DESC LIMIT 1)
    FROM unnest(%s::uuid[]) AS asked (id)))
"""  # noqa: S608  (a name of ours)


class Locking(StrEnum):
    """How the rows of the issuing agents are locked until the transaction ends; the value is SQL.

    A transaction that locks several agents takes only the free ones, in the order of ids, and so waits for no
    other transaction while it holds a lock.
    """

    NONE = ""
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


def read(wanted: Sequence[WantedRows], *, locking: Locking = Locking.NONE) -> GroupRows:
    """Read the rows of all requests in one round trip.

    With a lock on the issuing agents, all other rows are read after it is acquired; tokens are locked too, so
    that none of them is revoked before the transaction ends.
    """
    issuers = {one.agent_id for one in wanted}
    parents = [one.parent for one in wanted if one.parent is not None]
    behind = {one.agent_id for parent in parents for one in parent.lineage}
    tokens = sorted({one for parent in parents for one in _ids(parent)})
    shared = "" if locking is Locking.NONE else " FOR SHARE"
    of_parents: list[Question] = [
        (IssuedToken, f"{_TOKENS}{shared}", (sql.array(tokens),)),
        (Agent, _AGENTS, (sql.array(behind),)),
    ]
    agents, *found, certificates, active_keys = sql.read_together(
        (Agent, f"{_AGENTS}{locking.value}", (sql.array(issuers),)),
        *(of_parents if parents else ()),
        (Certificate, _LATEST_OF_EACH, (sql.array(issuers | behind),)),
        keys.ACTIVE,
    )
    latest = {certificate.agent_id: certificate for certificate in certificates}
    issued, others = found if parents else ([], [])
    known = {token.id: token for token in issued}
    return GroupRows(_by_id(agents, latest), _by_id(others, latest), known, active_keys)


def _by_id(agents: Iterable[Agent], latest: Mapping[UUID, Certificate]) -> dict[UUID, AgentAndCertificate]:
    return {agent.id: AgentAndCertificate(agent, latest.get(agent.id)) for agent in agents}


def _ids(parent: Delegation) -> set[UUID]:
    """The ids of a parent token and its ancestors; older tokens name none."""
    return {one.token_id for one in parent.lineage if one.token_id is not None}
