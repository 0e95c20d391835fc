"""Copies of a real active certificate, for agents of their own: nobody had to make keys for them."""

import psycopg

from compliance.localdev.console import StepFailed

_TEMPLATE = """
SELECT serial_number FROM certificates_certificate WHERE status = 'active' ORDER BY issued_at LIMIT 1
"""
_AGENTS = """
INSERT INTO agents_agent SELECT (made).* FROM (
    SELECT jsonb_populate_record(agent, jsonb_build_object('id', gen_random_uuid())) AS made
    FROM agents_agent AS agent, generate_series(1, %s::integer)
    WHERE agent.id = (SELECT agent_id FROM certificates_certificate WHERE serial_number = %s)
) AS copies RETURNING id
"""
_ACTIVE = """
INSERT INTO certificates_certificate SELECT (made).* FROM (
    SELECT jsonb_populate_record(model, jsonb_build_object(
        'id', gen_random_uuid(), 'agent_id', fresh.agent_id, 'serial_number', serial,
        'kms_key_arn', 'bench:' || serial
    )) AS made
    FROM certificates_certificate AS model, (
        SELECT agent_id, '42' || md5(agent_id::text) || '000000' AS serial
        FROM unnest(%s::uuid[]) AS agent_id
    ) AS fresh
    WHERE model.serial_number = %s
) AS copies RETURNING id::text, serial_number
"""


def active_copies(url: str, count: int) -> dict[str, str]:
    """Add so many active certificates to the database at `url`; return their ids by serial number."""
    with psycopg.connect(url) as connection:
        model = _template(connection)
        agents = [row[0] for row in connection.execute(_AGENTS, [count, model])]
        return {serial: id_ for id_, serial in connection.execute(_ACTIVE, [agents, model])}


def _template(connection: psycopg.Connection) -> str:
    found = connection.execute(_TEMPLATE).fetchone()
    if found is None:
        raise StepFailed("no certificate to copy", hint="try --fresh")
    return str(found[0])
