"""The rule of `delegation.standing` as SQL conditions, for queries that filter many rows."""

from typing import Final

from agents.models import Agent
from certificates.models import Certificate

TABLE: Final = "delegation_issuedtoken"

WITH_AGENT: Final = f"""
LEFT JOIN {Agent._meta.db_table} AS agent ON agent.id = one.agent_id
LEFT JOIN LATERAL (
    SELECT serial_number, status, expires_at FROM {Certificate._meta.db_table} AS certificate
    WHERE certificate.agent_id = one.agent_id ORDER BY issued_at DESC, id DESC LIMIT 1
) AS latest ON true
"""  # noqa: S608  (only names of tables are put into the text)
"""The agent of `one (agent_id, serial)`, and its latest certificate."""

IS_STOPPED: Final = """(
    agent.id IS NULL OR agent.status IN ('suspended', 'retired')
    OR latest.serial_number IS DISTINCT FROM one.serial
    OR latest.status <> 'active' OR latest.expires_at < {now}
)"""
"""Whether an agent `WITH_AGENT` lends nothing under the certificate `one.serial` any more."""

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
