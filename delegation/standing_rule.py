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

WITH_AGENT: Final = f"""
LEFT JOIN {Agent._meta.db_table} AS agent ON agent.id = one.agent_id
LEFT JOIN LATERAL (
    SELECT serial_number, status, expires_at FROM {Certificate._meta.db_table} AS certificate
    WHERE certificate.agent_id = one.agent_id ORDER BY issued_at DESC, id DESC LIMIT 1
) AS latest ON true
"""  # noqa: S608  (only names of tables are put into the text)
"""The agent of `one (agent_id, serial)`, and its latest certificate."""

IS_STOPPED: Final = f"""(
    agent.id IS NULL OR agent.status IN ({", ".join(f"'{status}'" for status in _BY_AGENT)})
    OR latest.serial_number IS DISTINCT FROM one.serial
    OR latest.status <> 'active' OR latest.expires_at < {{now}}
)"""
"""Whether `delegator_fault` finds a fault in an agent `WITH_AGENT`, with `one.serial` as the serial named."""

STANDS: Final = f"""(
    {TABLE}.revoked_at IS NULL
    AND NOT EXISTS (
        SELECT FROM {TABLE} AS ancestor
        WHERE ancestor.id = ANY({TABLE}.ancestor_ids) AND ancestor.revoked_at IS NOT NULL
    )
    AND NOT EXISTS (
        SELECT FROM unnest({TABLE}.lineage_agent_ids, {TABLE}.lineage_serials) AS one (agent_id, serial)
        {WITH_AGENT} WHERE {IS_STOPPED.format(now="%s")}
    )
)"""  # noqa: S608
"""Whether the row of an unexpired token stands; one parameter, the time now."""
