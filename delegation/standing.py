"""Whether delegation tokens stand now: one statement, for tokens at hand and for lists of many rows.

A token stands while neither it nor a token it came of is revoked, and while every agent behind it may
delegate under the certificate that the token names. Tokens name the agents and tokens behind them, so the
statement reads rows by their keys however deep a chain is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from typing import Any, Final, NamedTuple, Protocol
from uuid import UUID

from agents.models import AgentStatus, declared_actions
from agents.risk import band_of
from certificates.models import AGENT_AND_LATEST, Certificate, CertificateStatus
from compliance.stores import sql
from compliance.stores.async_postgres import Query
from delegation.jose.tokens import Delegator

TABLE: Final = "delegation_issuedtoken"


class NotStanding(StrEnum):
    """The first reason why a token does not stand: its own, or of an agent behind it."""

    UNKNOWN = "unknown"
    EXPIRED = "expired"
    REVOKED = "revoked"
    PARENT_REVOKED = "parent_revoked"
    AGENT_SUSPENDED = "agent_suspended"
    AGENT_RETIRED = "agent_retired"
    CERTIFICATE_REPLACED = "certificate_replaced"
    CERTIFICATE_REVOKED = "certificate_revoked"
    CERTIFICATE_EXPIRED = "certificate_expired"


class Shortcoming(StrEnum):
    """The first thing that an agent lacks which stands behind its tokens, but need not be let through."""

    NOT_ACTIVE = "agent_not_active"
    NOT_CERTIFIED = "agent_not_certified"
    SCOPE_UNDECLARED = "scope_undeclared"


def _statement(behind: str) -> str:
    """Return a query with a row for each agent behind each token, as `_Behind` and `token`; `$1` is now.

    `behind` gives token, place, agent_id, serial and token_id. Agents and tokens are of any tenant, so they
    are read as sets, each once: a subquery for each row could not be answered where tables are divided by
    tenant.
    """
    return f"""
WITH behind (token, place, agent_id, serial, token_id) AS MATERIALIZED (
    {behind}
), agents AS MATERIALIZED (
    SELECT agent.id, agent.tenant_id, agent.name::text, agent.status::text, agent.risk_score,
        latest.serial_number::text, latest.status AS certificate_status, latest.expires_at,
        CASE WHEN latest.id IS NULL THEN agent.metadata
            ELSE jsonb_build_object('permitted_actions', latest.claims -> 'permitted_actions') END AS declared
    FROM {AGENT_AND_LATEST} WHERE agent.id IN (SELECT agent_id FROM behind)
), overlapping AS MATERIALIZED (
    SELECT agent_id, serial_number::text AS serial FROM {Certificate._meta.db_table}
    WHERE status = '{CertificateStatus.ACTIVE}' AND superseded_at IS NOT NULL
        AND agent_id IN (SELECT agent_id FROM behind)
), issued AS MATERIALIZED (
    SELECT id, revoked_at FROM {TABLE} WHERE id IN (SELECT token_id FROM behind)
)
SELECT behind.token, behind.place, issued.id IS NOT NULL, issued.revoked_at IS NOT NULL AS is_revoked,
    CASE
        WHEN agent.id IS NULL THEN '{NotStanding.UNKNOWN}'
        WHEN agent.status = '{AgentStatus.SUSPENDED}' THEN '{NotStanding.AGENT_SUSPENDED}'
        WHEN agent.status = '{AgentStatus.RETIRED}' THEN '{NotStanding.AGENT_RETIRED}'
        WHEN agent.serial_number IS DISTINCT FROM behind.serial AND NOT EXISTS (
            SELECT FROM overlapping WHERE (agent_id, serial) = (behind.agent_id, behind.serial)
        ) THEN '{NotStanding.CERTIFICATE_REPLACED}'
        WHEN agent.certificate_status = '{CertificateStatus.REVOKED}' THEN '{NotStanding.CERTIFICATE_REVOKED}'
        WHEN agent.certificate_status = '{CertificateStatus.EXPIRED}' OR agent.expires_at < $1
            THEN '{NotStanding.CERTIFICATE_EXPIRED}'
    END AS fault,
    agent.tenant_id, agent.name, agent.status, agent.risk_score, agent.serial_number, agent.declared
FROM behind
LEFT JOIN agents AS agent ON agent.id = behind.agent_id
LEFT JOIN issued ON issued.id = behind.token_id
"""  # noqa: S608  (only names of tables and statuses are put into the text)


_ASKED = "SELECT * FROM unnest($2::int[], $3::int[], $4::uuid[], $5::text[], $6::uuid[])"
STANDING: Final = f"{_statement(_ASKED)} ORDER BY behind.token, behind.place"


class _Behind(NamedTuple):
    """An agent behind a token, its latest certificate, and the token it issued.

    `fault` says why the agent no longer stands behind its token. `declared` holds the permitted actions:
    certified ones, before that the profile's.
    """

    token: int
    place: int
    is_recorded: bool
    is_revoked: bool
    fault: str | None
    tenant_id: UUID | None
    agent_name: str | None
    agent_status: str | None
    risk_score: float | None
    serial: str | None
    declared: dict[str, Any] | None

    @property
    def shortcoming(self) -> Shortcoming | None:
        if self.agent_status != AgentStatus.ACTIVE:
            return Shortcoming.NOT_ACTIVE
        if self.serial is None:
            return Shortcoming.NOT_CERTIFIED
        return Shortcoming.SCOPE_UNDECLARED if declared_actions(self.declared) is None else None


class DescendedToken(Protocol):
    """An authentic token by its claims or its row; `lineage` names the agents behind it, its own last."""

    @property
    def lineage(self) -> tuple[Delegator, ...]: ...

    def has_expired(self, now: datetime) -> bool: ...


@dataclass(frozen=True, slots=True)
class Standing:
    """The standing of an authentic token; `reason` None: it stands.

    `tenants` and `permitted` are of each agent behind the token, root to current; `permitted` as in
    `certificates.models.certified_actions`. Name, risk and certificate are of the agent that issued it.
    `shortcoming` is the first of all agents behind it, and `highest_risk_score` the highest of them.
    """

    reason: NotStanding | None
    tenants: Sequence[UUID | None]
    permitted: Sequence[Sequence[str] | None]
    agent_name: str
    risk_score: float
    highest_risk_score: float
    certificate_serial: str | None
    shortcoming: Shortcoming | None

    @property
    def stands(self) -> bool:
        return self.reason is None

    @property
    def tenant_id(self) -> UUID | None:
        return self.tenants[-1]

    @property
    def root_tenant_id(self) -> UUID | None:
        """The tenant of the first agent: if the root is verified, by an issuer that it trusts."""
        return self.tenants[0]

    @property
    def permitted_actions(self) -> Sequence[str] | None:
        return self.permitted[-1]

    def is_permitted_before(self, action: str) -> bool:
        """Return whether every agent before the one that issued the token is permitted the action now."""
        return all(known is None or action in known for known in self.permitted[:-1])

    @property
    def risk_band(self) -> str:
        return band_of(self.risk_score)


def standings(tokens: Sequence[DescendedToken], *, now: datetime) -> list[Standing]:
    """Return the standings of authentic tokens of the current environment, in order, by one statement."""
    return standings_from(tokens, sql.asked(*query(tokens, now=now)), now=now) if tokens else []


def query(tokens: Sequence[DescendedToken], *, now: datetime) -> Query:
    """The statement for these tokens; `standings_from` reads its rows."""
    asked = [
        (number, place, one.agent_id, one.certificate_serial, one.token_id)
        for number, token in enumerate(tokens)
        for place, one in enumerate(token.lineage)
    ]
    numbers, places, agents, serials, ids = zip(*asked, strict=True)
    return Query(STANDING, [now, *map(sql.array, (numbers, places, agents)), list(serials), sql.array(ids)])


def standings_from(
    tokens: Sequence[DescendedToken], rows: Iterable[Sequence[Any]], *, now: datetime
) -> list[Standing]:
    """Return each token's standing by the rows of its `query`."""
    behind = groupby((_Behind(*row) for row in rows), key=lambda row: row.token)
    return [_standing(tokens[number], list(found), now) for number, found in behind]


def ended(listed: str, *params: Any, now: datetime) -> list[Any]:
    """Return those of the unexpired tokens of a query that do not stand.

    `listed` gives any key of a token, its id, ancestor_ids, lineage_agent_ids and lineage_serials; its
    parameters begin at `$2`.
    """
    behind = f"""
SELECT listed.token, one.place, one.agent_id, one.serial, one.token_id
FROM ({listed}) AS listed (token, id, ancestors, agents, serials),
    unnest(agents, serials, ancestors || id) WITH ORDINALITY AS one (agent_id, serial, token_id, place)
"""  # noqa: S608  (as above)
    statement = (
        f"SELECT DISTINCT token FROM ({_statement(behind)}) AS found WHERE is_revoked OR fault IS NOT NULL"  # noqa: S608
    )
    return [token for (token,) in sql.asked(statement, [now, *params])]


def _standing(token: DescendedToken, behind: Sequence[_Behind], now: datetime) -> Standing:
    """Return a token's standing by its rows, root to current as its lineage."""
    own, faults = behind[-1], [row.fault for row in behind]
    if NotStanding.UNKNOWN in faults or not own.is_recorded:
        reason: NotStanding | None = NotStanding.UNKNOWN
    elif token.has_expired(now):
        reason = NotStanding.EXPIRED
    elif any(row.is_revoked for row in behind):
        reason = NotStanding.REVOKED if own.is_revoked else NotStanding.PARENT_REVOKED
    else:
        reason = next((NotStanding(fault) for fault in reversed(faults) if fault), None)
    return Standing(
        reason=reason,
        tenants=[row.tenant_id for row in behind],
        permitted=[declared_actions(row.declared) for row in behind],
        agent_name=own.agent_name or "",
        risk_score=own.risk_score or 0.0,
        highest_risk_score=max(row.risk_score or 0.0 for row in behind),
        certificate_serial=own.serial,
        shortcoming=next((row.shortcoming for row in behind if row.shortcoming), None),
    )
