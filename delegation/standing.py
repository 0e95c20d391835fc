"""Whether delegation tokens stand now: one statement for any number of tokens and the agents behind them.

A token's own claims name its ancestors and the agents behind it with their certificates, so that the
statement reads rows by their keys however deep the chain is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, Final, NamedTuple
from uuid import UUID

from agents.models import Agent, declared_actions
from agents.risk import band_of
from certificates.models import Certificate, CertificateStatus, status_by_clock
from compliance.stores import sql
from compliance.stores.async_postgres import Query
from delegation.jose.tokens import Delegation, Delegator, RootAssurance
from delegation.models import IssuedToken
from delegation.standing_rule import NotStanding, delegator_fault, revocation_fault

STANDING: Final = f"""
SELECT asked.token, issued.id IS NOT NULL, issued.revoked_at IS NOT NULL,
    agent.tenant_id, agent.name, agent.status, agent.risk_score,
    agent.serial_number, agent.certificate_status, agent.expires_at, agent.declared
FROM unnest($1::int[], $2::int[], $3::uuid[], $4::uuid[]) AS asked (token, place, agent_id, token_id)
LEFT JOIN (
    SELECT id, revoked_at FROM {IssuedToken._meta.db_table} WHERE id = ANY($4::uuid[])
) AS issued ON issued.id = asked.token_id
LEFT JOIN (
    SELECT found.id, found.tenant_id, found.name::text, found.status::text, found.risk_score,
        latest.serial_number::text, latest.status::text AS certificate_status, latest.expires_at,
        CASE WHEN latest.serial_number IS NULL THEN found.metadata
            ELSE jsonb_build_object('permitted_actions', latest.claims -> 'permitted_actions') END AS declared
    FROM {Agent._meta.db_table} AS found
    LEFT JOIN LATERAL (
        SELECT serial_number, status, expires_at, claims FROM {Certificate._meta.db_table} AS certificate
        WHERE certificate.tenant_id = found.tenant_id AND certificate.agent_id = found.id
        ORDER BY issued_at DESC, id DESC LIMIT 1
    ) AS latest ON true
    WHERE found.id = ANY($3::uuid[])
) AS agent ON agent.id = asked.agent_id
ORDER BY asked.token, asked.place
"""  # noqa: S608  (only names of tables are put into the text)
"""One row for each token and agent behind it; what each column is, `_Behind` says."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How an authentic token stands; `reason` None: it stands.

    `at_agent_id` is the agent that the reason is about. The other fields tell of the agent that issued the
    token as it is now; `permitted_actions` as in `certificates.models.certified_actions`. They are empty if
    there is no such agent. `permitted_before` holds the permitted actions of each agent before it that states
    any. `highest_risk_score` is the highest of the agents behind the token. `root_tenant_id` is the tenant of
    the first of them: if the root is verified, by an issuer that it trusts.
    """

    token_id: UUID
    agent_id: UUID
    reason: NotStanding | None
    at_agent_id: UUID | None = None
    tenant_id: UUID | None = None
    root_tenant_id: UUID | None = None
    agent_name: str = ""
    risk_score: float = 0.0
    highest_risk_score: float = 0.0
    certificate_serial: str | None = None
    permitted_actions: Sequence[str] | None = None
    permitted_before: Sequence[Sequence[str]] = ()

    @property
    def stands(self) -> bool:
        return self.reason is None

    def is_permitted_before(self, action: str) -> bool:
        """Whether every agent before the one that issued the token is permitted the action now."""
        return all(action in permitted for permitted in self.permitted_before)

    @property
    def risk_band(self) -> str:
        return band_of(self.risk_score)

    @property
    def highest_risk_band(self) -> str:
        return band_of(self.highest_risk_score)


@dataclass(frozen=True)
class Introspection:
    """A token that stands, with the state of the agent that issued it."""

    delegation: Delegation
    standing: Standing

    @property
    def vouching_tenant_id(self) -> UUID | None:
        """The tenant whose trusted issuer verified the root; None for an asserted root."""
        is_verified = self.delegation.root_assurance is RootAssurance.VERIFIED
        return self.standing.root_tenant_id if is_verified else None


class _Behind(NamedTuple):
    """A row of the statement: a token behind the one asked about, or itself, its agent and the agent's latest
    certificate. `declared` holds the permitted actions: certified ones, before that the profile's.
    """

    token: int
    is_recorded: bool
    is_revoked: bool
    tenant_id: UUID | None
    agent_name: str | None
    agent_status: str | None
    risk_score: float | None
    serial: str | None
    certificate_status: str | None
    certificate_expires_at: datetime | None
    declared: dict[str, Any] | None

    def certificate_status_at(self, now: datetime) -> CertificateStatus | None:
        if self.certificate_status is None or self.certificate_expires_at is None:
            return None
        return status_by_clock(self.certificate_status, self.certificate_expires_at, now)


def standings(tokens: Sequence[Delegation], *, now: datetime) -> list[Standing]:
    """How authentic tokens of the current environment stand, in order, by one statement."""
    return standings_from(tokens, sql.asked(*query(tokens)), now=now) if tokens else []


def query(tokens: Sequence[Delegation]) -> Query:
    """The statement for these tokens; `standings_from` reads its rows."""
    asked = [
        (number, place, one.agent_id, one.token_id)
        for number, token in enumerate(tokens)
        for place, one in enumerate(token.lineage)
    ]
    columns = list(zip(*asked, strict=True))
    return Query(STANDING, [*(sql.array(column) for column in columns[:3]), _with_nulls(columns[3])])


def standings_from(
    tokens: Sequence[Delegation], rows: Iterable[Sequence[Any]], *, now: datetime
) -> list[Standing]:
    """How each of the tokens stands by the rows of its `query`."""
    behind = groupby((_Behind(*row) for row in rows), key=lambda row: row.token)
    return [_standing(tokens[number], list(found), now) for number, found in behind]


def _with_nulls(ids: Iterable[UUID | None]) -> str:
    return sql.array("NULL" if one is None else one for one in ids)


def _standing(token: Delegation, behind: Sequence[_Behind], now: datetime) -> Standing:
    """How a token stands by its rows, root to current as its lineage."""
    own = behind[-1]
    reason, at_agent_id = _of_token(token, behind, now), None
    if reason is None:
        reason, at_agent_id = _of_agents(token.lineage, behind, now)
    return Standing(
        token_id=token.token_id,
        agent_id=token.agent_id,
        reason=reason,
        at_agent_id=at_agent_id,
        tenant_id=own.tenant_id,
        root_tenant_id=behind[0].tenant_id,
        agent_name=own.agent_name or "",
        risk_score=own.risk_score or 0.0,
        highest_risk_score=max(one.risk_score or 0.0 for one in behind),
        certificate_serial=own.serial,
        permitted_actions=declared_actions(own.declared),
        permitted_before=tuple(
            permitted for one in behind[:-1] if (permitted := declared_actions(one.declared)) is not None
        ),
    )


def _of_token(token: Delegation, behind: Sequence[_Behind], now: datetime) -> NotStanding | None:
    """What the rows of the tokens say; only tokens that name a status are sure to have one."""
    if any(one.agent_status is None for one in behind) or (token.status and not behind[-1].is_recorded):
        return NotStanding.UNKNOWN
    if now.timestamp() >= token.expires_at:
        return NotStanding.EXPIRED
    return revocation_fault([one.is_revoked for one in behind])


def _of_agents(
    lineage: Sequence[Delegator], behind: Sequence[_Behind], now: datetime
) -> tuple[NotStanding | None, UUID | None]:
    """The first reason against an agent behind the token, its own agent first, then back to the root's."""
    for delegator, row in zip(reversed(lineage), reversed(behind), strict=True):
        reason = delegator_fault(
            agent_status=row.agent_status or "",
            serial_number=row.serial,
            certificate_status=row.certificate_status_at(now),
            named_serial=delegator.certificate_serial,
        )
        if reason:
            return reason, delegator.agent_id
    return None, None
