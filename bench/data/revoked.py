"""Very many certificates that nobody had to make keys for: rows as revoking and certifying leave them.

They repeat one real certificate under other serial numbers, for agents of their own where they are active.
"""

import psycopg

from bench.harness.place import Place
from compliance.localdev.console import StepFailed

_TEMPLATE = """
SELECT serial_number FROM certificates_certificate WHERE status = %s ORDER BY issued_at LIMIT 1
"""
_REVOKED = """
INSERT INTO certificates_certificate (
    id, tenant_id, agent_id, authority_id, serial_number, kms_key_arn, certificate_pem, claims, status,
    not_before, issued_at, expires_at, revoked_at, revocation_reason, revocation_code, crl_shard, crl_entry,
    first_crl_number
)
SELECT gen_random_uuid(), tenant_id, agent_id, authority_id, serial, 'bench:' || serial, certificate_pem,
    claims, 'revoked', not_before, issued_at, expires_at, revoked_at, 'bench', revocation_code, n %% 16,
    overlay(crl_entry PLACING decode(serial, 'hex') FROM 5 FOR 20), 1
FROM certificates_certificate,
    (SELECT n, '41' || md5(n::text) || lpad(to_hex(n), 6, '0') AS serial
     FROM generate_series(%s::integer, %s::integer) AS n)
WHERE serial_number = %s
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


class Crowd:
    """The certificates of a run's live database."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def revoke_up_to(self, count: int) -> None:
        """So many revoked certificates, all but one of which are on the lists already."""
        with psycopg.connect(self._place.live_url, autocommit=True) as connection:
            if not _revoked(connection):
                serial = _template(connection, "active")
                arguments = ("--serial", serial, "--reason", "keyCompromise", "--environment", "live")
                self._place.manage("cert_revoke", *arguments, kind="bench")
            serial = _template(connection, "revoked")
            connection.execute("SET statement_timeout = 0")
            connection.execute(_REVOKED, [_revoked(connection), count - 1, serial])
            connection.execute("VACUUM ANALYZE certificates_certificate")
            connection.execute(
                "UPDATE certificates_certificate SET first_crl_number = NULL WHERE serial_number = %s",
                [serial],
            )
            connection.execute("CHECKPOINT")

    def active(self, count: int) -> dict[str, str]:
        """So many more active certificates: ids by serial number."""
        return active_copies(self._place.live_url, count)


def active_copies(url: str, count: int) -> dict[str, str]:
    """Add so many active certificates to the database at `url`; return their ids by serial number."""
    with psycopg.connect(url) as connection:
        model = _template(connection, "active")
        agents = [row[0] for row in connection.execute(_AGENTS, [count, model])]
        return {serial: id_ for id_, serial in connection.execute(_ACTIVE, [agents, model])}


def _template(connection: psycopg.Connection, status: str) -> str:
    found = connection.execute(_TEMPLATE, [status]).fetchone()
    if found is None:
        raise StepFailed(f"no {status} certificate to copy", hint="try --fresh")
    return str(found[0])


def _revoked(connection: psycopg.Connection) -> int:
    count = "SELECT count(*) FROM certificates_certificate WHERE status = 'revoked'"
    (found,) = connection.execute(count).fetchall()
    return int(found[0])
