"""A long audit log: entries by SQL, sealed by the service's own sealer."""

from bench.audit.run import AuditRun, Child
from bench.harness.report import number
from bench.rulers.pgbench import NEW_ID
from compliance.localdev.console import say, step

CHUNK = 500_000
FILL = """
INSERT INTO auditlog_auditentry (id, tenant_id, event_type, actor_type, actor_kind, actor_id, description,
                                 affected_id, metadata, created_at)
SELECT {new_id}, %(tenant)s, 'agent.updated', 'user', 'api_key',
       'api_key:00000000-0000-0000-0000-000000000007', 'Agent ' || n || ' updated',
       lpad(to_hex(n::bigint * 7919 %% 10000), 32, '0')::uuid::text,
       jsonb_build_object('changed', jsonb_build_array('version', 'metadata'), 'version', n),
       clock_timestamp()
FROM generate_series(1, %(count)s) AS n
"""
UNUSED = ("auditlog_tenant_time", "auditlog_tenant_type", "auditlog_tenant_affected")
"""Indexes that nothing measured here reads; they would slow the filling down."""
TABLES = ("auditlog_auditentry", "auditlog_leaf", "auditlog_tile", "auditlog_pendingentry")


def grow(run: AuditRun, child: Child, size: int) -> None:
    """Entries up to so many, all sealed; tells how fast the sealer got through them."""
    with run.connect() as connection:
        new_id = "uuidv7()" if connection.info.server_version >= 180_000 else NEW_ID
    run.query(f"DROP INDEX IF EXISTS {', '.join(UNUSED)}")
    sealed, seconds = child.ask("seal")
    while (missing := size - _sealed(run)) > 0:
        count = min(CHUNK, missing)
        with step(f"{count:,} of {missing:,} entries, sealed"):
            run.query(FILL.format(new_id=new_id), {"tenant": run.place.tenant_id, "count": count})
            found = child.ask("seal")
            sealed, seconds = sealed + found[0], seconds + found[1]
    for table in TABLES:
        run.query(f"VACUUM ANALYZE {table}")
    run.figures["sealed_per_s"] = sealed / seconds
    run.lines.append(f"A backlog of {sealed:,} entries was sealed at {number(sealed / seconds)}/s")
    say(f"  … {sealed:,} entries sealed at {sealed / seconds:,.0f}/s")


def _sealed(run: AuditRun) -> int:
    return int(run.query("SELECT size FROM auditlog_treehead")[0][0])
