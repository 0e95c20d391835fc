"""The rule of whether a token stands: in Python for rows at hand, in SQL for queries that filter many rows.

A token stands while neither it nor an ancestor is revoked, and while every agent behind it may delegate
under the certificate that the token names. A test compares the two languages over every combination.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from agents.models import Agent, AgentStatus
from certificates.models import Certificate, CertificateStatus


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


_BY_AGENT: Final = {
    AgentStatus.SUSPENDED.value: NotStanding.AGENT_SUSPENDED,
    AgentStatus.RETIRED.value: NotStanding.AGENT_RETIRED,
}
_BY_CERTIFICATE: Final = {
    CertificateStatus.REVOKED: NotStanding.CERTIFICATE_REVOKED,
    CertificateStatus.EXPIRED: NotStanding.CERTIFICATE_EXPIRED,
}


def revocation_fault(revoked: Sequence[bool]) -> NotStanding | None:
    """Why a token does not stand; None if it and its ancestors are unrevoked.

    `revoked` says for each ancestor, oldest first, and last for the token itself, whether it is revoked.
    """
    if revoked and revoked[-1]:
        return NotStanding.REVOKED
    return NotStanding.PARENT_REVOKED if any(revoked) else None


def agent_fault(status: str) -> NotStanding | None:
    """Why an agent of this status may not delegate; None: it may."""
    return _BY_AGENT.get(status)


def certificate_fault(status: CertificateStatus | None) -> NotStanding | None:
    """Why an agent may not delegate under a certificate of this status.

    None if it may, and for an agent that never had a certificate.
    """
    return None if status is None else _BY_CERTIFICATE.get(status)


def delegator_fault(
    *,
    agent_status: str,
    serial_number: str | None,
    certificate_status: CertificateStatus | None,
    named_serial: str | None,
) -> NotStanding | None:
    """Why an agent behind a token no longer stands behind it; None if it does.

    `named_serial` is the certificate that the token says the agent issued under; None if the agent had none.
    `agent_status` is the agent's status now; `serial_number` and `certificate_status` are those of its latest
    certificate, None if it never had one.
    """
    if fault := agent_fault(agent_status):
        return fault
    if serial_number != named_serial:
        return NotStanding.CERTIFICATE_REPLACED
    return certificate_fault(certificate_status)


TABLE: Final = "delegation_issuedtoken"

IS_STOPPED: Final = f"""(
    agent.id IS NULL OR agent.status IN ({", ".join(f"'{status}'" for status in _BY_AGENT)})
    OR latest.serial_number IS DISTINCT FROM one.serial
    OR latest.status <> 'active' OR latest.expires_at < {{now}}
)"""
"""Whether `delegator_fault` finds a fault in `agent` and its certificate `latest`; `one.serial` is named."""

LISTED: Final = ("id", "ancestor_ids", "lineage_agent_ids", "lineage_serials", "revoked_at")


def ended_among(listed: str, *, now: str) -> str:
    """Return a query of those unexpired tokens of the query `listed` that do not stand, as `token`.

    `listed` has the columns `LISTED`, with any key of a token for the first; `now` is the place of the time.
    Ancestors and agents are of any tenant, so they are read as sets, each agent once: a subquery for each row
    could not be answered where tables are divided by tenant.
    """
    return f"""
WITH listed (token, ancestor_ids, lineage_agent_ids, lineage_serials, revoked_at) AS MATERIALIZED (
    {listed}
), behind AS MATERIALIZED (
    SELECT listed.token, one.agent_id, one.serial
    FROM listed, unnest(listed.lineage_agent_ids, listed.lineage_serials) AS one (agent_id, serial)
), agents AS MATERIALIZED (
    SELECT agent.id, agent.status, latest.serial_number, latest.status AS certificate_status,
        latest.expires_at
    FROM {Agent._meta.db_table} AS agent LEFT JOIN LATERAL (
        SELECT serial_number, status, expires_at FROM {Certificate._meta.db_table} AS certificate
        WHERE certificate.tenant_id = agent.tenant_id AND certificate.agent_id = agent.id
        ORDER BY issued_at DESC, id DESC LIMIT 1
    ) AS latest ON true
    WHERE agent.id IN (SELECT agent_id FROM behind)
), stopped AS MATERIALIZED (
    SELECT one.agent_id, one.serial
    FROM (SELECT DISTINCT agent_id, serial FROM behind) AS one
    LEFT JOIN agents AS agent ON agent.id = one.agent_id
    LEFT JOIN LATERAL (
        SELECT agent.serial_number, agent.certificate_status AS status, agent.expires_at
    ) AS latest ON true
    WHERE {IS_STOPPED.format(now=now)}
)
SELECT token FROM listed WHERE revoked_at IS NOT NULL
UNION SELECT listed.token FROM listed CROSS JOIN unnest(listed.ancestor_ids) AS up (id)
    JOIN {TABLE} AS ancestor ON ancestor.id = up.id AND ancestor.revoked_at IS NOT NULL
UNION SELECT behind.token FROM behind
    JOIN stopped ON stopped.agent_id = behind.agent_id AND stopped.serial IS NOT DISTINCT FROM behind.serial
"""  # noqa: S608  (only names of tables are put into the text)
