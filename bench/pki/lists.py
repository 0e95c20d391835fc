"""Revocation lists: a process that publishes one."""

import json
import subprocess
import sys

import psycopg

from bench.harness.place import Place
from bench.harness.report import TableRun, number
from compliance.localdev.console import StepFailed, say, step

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


def revocation_lists(run: TableRun) -> None:
    """A full list, its delta and its shard, after one more revocation, by the number of entries."""
    rows = [["revoked certificates", "published s", "peak MB", "size MB"]]
    for size in run.options.lists:
        with step(f"{size:,} revoked certificates"):
            _revoke_up_to(run.place, size)
        found = _measured(run)
        if int(found["entries"]) != size:
            raise StepFailed(f"the list has {found['entries']:,.0f} entries", hint="this is a defect")
        figures = [found["seconds"], found["peak_mb"], found["size_mb"]]
        rows.append([f"{size:,}", *map(number, figures)])
        run.figures[f"crl_{size}_s"] = found["seconds"]
        say(f"  … {size:,} entries")
    run.tell("Revocation lists, a process each, from the first query to the last commit", rows)


def _measured(run: TableRun) -> dict[str, float]:
    """What a process of the service measured."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.pki.list_child"],
        env=run.place.environment() | {"LOG_LEVEL": "WARNING"}, cwd=run.place.servers.layout.root,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise StepFailed(f"bench.pki.list_child failed: {last}", hint="run it by hand to see more")
    return dict(json.loads(done.stdout))


def _revoke_up_to(place: Place, count: int) -> None:
    """So many revoked certificates, all but one of which are on the lists already."""
    with psycopg.connect(place.live_url, autocommit=True) as connection:
        if not _revoked(connection):
            serial = _template(connection, "active")
            arguments = ("--serial", serial, "--reason", "keyCompromise", "--environment", "live")
            place.manage("cert_revoke", *arguments, kind="bench")
        serial = _template(connection, "revoked")
        connection.execute("SET statement_timeout = 0")
        connection.execute(_REVOKED, [_revoked(connection), count - 1, serial])
        connection.execute("VACUUM ANALYZE certificates_certificate")
        connection.execute(
            "UPDATE certificates_certificate SET first_crl_number = NULL WHERE serial_number = %s",
            [serial],
        )
        connection.execute("CHECKPOINT")


def _template(connection: psycopg.Connection, status: str) -> str:
    found = connection.execute(_TEMPLATE, [status]).fetchone()
    if found is None:
        raise StepFailed(f"no {status} certificate to copy", hint="try --fresh")
    return str(found[0])


def _revoked(connection: psycopg.Connection) -> int:
    count = "SELECT count(*) FROM certificates_certificate WHERE status = 'revoked'"
    (found,) = connection.execute(count).fetchall()
    return int(found[0])
