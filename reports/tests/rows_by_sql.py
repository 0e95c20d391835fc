"""What the rows give for the figures of a report's sentences, by SQL apart from the service's queries."""

# ruff: noqa: S608  (the statements are put together from this file alone)

PERIOD = "tenant_id = %(tenant)s AND {0} >= %(start)s AND {0} < %(end)s"
EVENTS = f"FROM events_behaviorevent e WHERE {PERIOD.format('received_at')}"
HIGH = f"{EVENTS} AND risk_score >= 0.85"
TRANSACTIONS = f"{EVENTS} AND action_type LIKE 'transaction_%%'"
ENTRIES = f"FROM auditlog_auditentry e WHERE {PERIOD.format('created_at')}"
OWN = "FROM auditlog_auditentry e JOIN auditlog_leaf l ON l.entry_id = e.id WHERE tenant_id = %(tenant)s"
ISSUED = f"{ENTRIES} AND event_type = 'delegation.issued'"
ROOT = "metadata->'chain'->0->>'type'"
PROVEN = "coalesce(metadata->>'root_assurance', '') = 'verified'"
HELD = (
    "EXISTS (SELECT FROM certificates_endedhold h WHERE h.certificate_id = c.id AND held_at {}"
    " AND ended_at >= %(end)s)"
)
HELD_AT_END = HELD.format("< %(end)s")
CERTIFICATES = (
    "FROM certificates_certificate c WHERE tenant_id = %(tenant)s AND issued_at < %(end)s"
    " AND expires_at > %(start)s AND (revoked_at IS NULL OR revoked_at >= %(start)s)"
    f" AND NOT {HELD.format('<= %(start)s')}"
)
ON_HOLD = f"(revocation_code = 'certificateHold' AND revoked_at < %(end)s OR {HELD_AT_END})"
REVOKED = f"(revoked_at < %(end)s AND revocation_code <> 'certificateHold' AND NOT {HELD_AT_END})"
VERDICT = (
    "(SELECT {} FROM events_eventreview r WHERE (r.event_id, r.tenant_id) = (e.id, e.tenant_id)"
    " ORDER BY number {} LIMIT 1)"
)
LAST, FIRST_AT = VERDICT.format("verdict", "DESC"), VERDICT.format("reviewed_at", "")
IS_KEY = f"{VERDICT.format('actor_id', 'DESC')} LIKE 'api_key:%%'"
LAST_BY = f"CASE WHEN {IS_KEY} THEN 'api_key' ELSE 'person' END"
ACTS = "('agent.suspended', 'agent.reinstated', 'agent.retired', 'certificate.revoked', 'event.reviewed')"
AGENTS = (
    "FROM agents_agent a WHERE tenant_id = %(tenant)s AND created_at < %(end)s"
    " AND NOT (status = 'retired' AND status_changed_at < %(start)s)"
)
ACTIVE = f"{AGENTS} AND status = 'active'"
# In these worlds no mode is changed back.
OBSERVED = (
    "EXISTS (SELECT FROM auditlog_auditentry e WHERE e.tenant_id = a.tenant_id AND e.affected_id = a.id::text"
    " AND e.event_type = 'agent.enforcement_changed' AND metadata->>'after' = 'observe'"
    " AND e.created_at < %(end)s)"
)
INCIDENTS = f"FROM incidents_incident i WHERE {PERIOD.format('opened_at')}"
STRIKE = "SELECT e.created_at - b.received_at AS took FROM auditlog_auditentry e JOIN events_behaviorevent b"
STRIKES = (
    f"{STRIKE} ON b.tenant_id = e.tenant_id AND b.id::text = e.metadata->>'event_id'"
    " WHERE e.tenant_id = %(tenant)s"
    " AND e.event_type = 'agent.high_risk' AND e.created_at >= %(start)s AND e.created_at < %(end)s"
)
REVIEWS = f"SELECT {FIRST_AT} - received_at AS took {HIGH} AND {LAST} IS NOT NULL"
PARTITIONS = (
    "FROM (SELECT DISTINCT metadata->>'received_from' f, metadata->>'received_before' b,"
    " bool_or(metadata ? 'sha256' AND metadata->>'sha256' IS NOT NULL) OVER w archived,"
    " bool_or(event_type = 'events.dropped') OVER w dropped FROM auditlog_auditentry"
    " WHERE event_type IN ('events.archived', 'events.dropped')"
    " WINDOW w AS (PARTITION BY metadata->>'received_from')) p"
    " WHERE f::timestamptz < %(end)s"
    " AND b::timestamptz > (SELECT created_at FROM tenancy_tenant WHERE id = %(tenant)s)"
)
ERASED = f"{ENTRIES} AND event_type = 'audit.erased'"
# The places between the tenant's last entry before the period and its first one after it, or the tree's end.
PLACES = (
    "FROM auditlog_leaf l WHERE entry_id NOT IN (SELECT id FROM auditlog_auditentry)"
    f" AND index > (SELECT coalesce(max(index), -1) {OWN} AND created_at < %(start)s)"
    f" AND index < (SELECT coalesce(min(index), 1 << 40) {OWN} AND created_at >= %(end)s)"
)
SIZE = "(SELECT max(size) FROM auditlog_signedhead)"
UNDER = f"AND id IN (SELECT entry_id FROM auditlog_leaf WHERE index < {SIZE})"
CHANGED = "id::text = ANY(%(tampered)s)"
ACTORS = (("person", "people"), ("api_key", "API keys"), ("agent", "agents"), ("system", "the service"))
RETAINED = (
    "SELECT (metadata->>'days')::int, created_at, (metadata->>'before')::int FROM auditlog_auditentry"
    " WHERE event_type = 'retention.changed' AND metadata->>'setting' = '{}_RETENTION_DAYS'"
)


def of(action: str) -> str:
    return f"{ENTRIES} AND event_type = '{action}'"


# What a word in braces stands for: counted rows, or SQL of one value.
COUNTS = {
    "events": EVENTS,
    "high": HIGH,
    "transactions": TRANSACTIONS,
    "unlinked": f"{TRANSACTIONS} AND num_nonnulls(chain_id, session_id) = 0",
    "reviewed": f"{HIGH} AND {LAST} IS NOT NULL",
    "confirmed": f"{HIGH} AND {LAST} = 'confirmed'",
    "dismissed": f"{HIGH} AND {LAST} = 'dismissed'",
    "unreviewed": f"{HIGH} AND {LAST} IS NULL",
    "verdicts_of_keys": f"{HIGH} AND {LAST} IS NOT NULL AND {LAST_BY} = 'api_key'",
    "entries": ENTRIES,
    "interventions": f"{ENTRIES} AND actor_kind = 'person' AND event_type IN {ACTS}",
    "stops": of("agent.high_risk"),
    "stops_not_made": of("agent.would_have_stopped"),
    "agents": AGENTS,
    "owned": f"{AGENTS} AND owner_email IS NOT NULL",
    "orphaned": f"{AGENTS} AND owner_email IS NULL AND status <> 'retired'",
    "silent": f"{ACTIVE} AND NOT EXISTS (SELECT {EVENTS} AND e.agent_id = a.id)",
    "nameless": f"{AGENTS} AND (coalesce(model, '') = '' OR coalesce(version, '') = '')",
    "scopeless": f"{AGENTS} AND jsonb_typeof(metadata->'permitted_actions') IS DISTINCT FROM 'array'",
    "uncertified": (
        f"{ACTIVE} AND NOT EXISTS (SELECT FROM certificates_certificate c"
        " WHERE (c.tenant_id, c.agent_id) = (a.tenant_id, a.id) AND c.status = 'active'"
        " AND expires_at > %(generated_at)s)"
    ),
    "certificates": CERTIFICATES,
    "standing": (
        f"{CERTIFICATES} AND expires_at >= %(end)s AND (revoked_at IS NULL OR revoked_at >= %(end)s)"
        f" AND NOT {HELD_AT_END}"
    ),
    "on_hold": f"{CERTIFICATES} AND expires_at >= %(end)s AND {ON_HOLD}",
    "revoked_for_good": f"{CERTIFICATES} AND {REVOKED}",
    "expired": f"{CERTIFICATES} AND expires_at < %(end)s AND NOT coalesce({REVOKED}, false)",
    "short_lived": f"{CERTIFICATES} AND expires_at - issued_at <= interval '365 days'",
    "verified_roots": f"{ISSUED} AND {ROOT} = 'human' AND {PROVEN}",
    "asserted_roots": f"{ISSUED} AND {ROOT} = 'human' AND NOT {PROVEN}",
    "no_roots": f"{ISSUED} AND {ROOT} IS DISTINCT FROM 'human'",
    "unscoped": f"{ISSUED} AND metadata->>'scope_checked' IS DISTINCT FROM 'true'",
    "incidents": INCIDENTS,
    "sealed": f"{ENTRIES} {UNDER} AND NOT {CHANGED}",
    "unsealed": f"{ENTRIES} AND id NOT IN (SELECT entry_id FROM auditlog_leaf WHERE index < {SIZE})",
    "changed": f"{ENTRIES} AND {CHANGED}",
    "places": PLACES,
    "erased_parts": (
        f"FROM (SELECT jsonb_object_keys(l.erased) {OWN} AND created_at >= %(start)s"
        " AND created_at < %(end)s) p"
    ),
    "erased_entries": f"{OWN} AND created_at >= %(start)s AND created_at < %(end)s AND l.erased IS NOT NULL",
    "parts_erased_then": f"FROM (SELECT jsonb_array_elements(metadata->'parts') {ERASED}) p",
    "entries_erased_then": f"FROM (SELECT DISTINCT affected_id {ERASED}) p",
    "erasures": ERASED,
    "archived": f"{PARTITIONS} AND archived",
    "observed": f"{AGENTS} AND {OBSERVED}",
    "enforced": f"{AGENTS} AND NOT {OBSERVED}",
}
VALUES = {
    "kinds": f"SELECT count(DISTINCT action_type) {EVENTS}",
    "size": f"SELECT {SIZE}",
    "root": f"SELECT encode(root, 'base64') FROM auditlog_signedhead WHERE size = {SIZE}",
    **{
        f"{step}s": f"SELECT count(DISTINCT date_trunc('{step}', received_at)) {EVENTS}"
        for step in ("day", "month")
    },
    **{f"{name}_days": f"SELECT %({name})s" for name in ("event", "entry", "kept")},
    "verified_size": "SELECT size FROM auditlog_signedhead",
    "instant": f"SELECT CASE WHEN max(took) < interval '1 ms' THEN 'reading' END FROM ({STRIKES}) s",
    "states": (
        "SELECT string_agg(n || ' ' || state, ', ' ORDER BY state)"
        f" FROM (SELECT state, count(*) n {INCIDENTS} GROUP BY state) s"
    ),
}
TIMES = {
    "review_median": f"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY took) FROM ({REVIEWS}) s",
    "review_longest": f"SELECT max(took) FROM ({REVIEWS}) s",
    "stop_median": f"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY took) FROM ({STRIKES}) s",
    "stop_longest": f"SELECT max(took) FROM ({STRIKES}) s",
    **{
        f"{name}_age": f"SELECT %(generated_at)s - min({at}) FROM {table} WHERE tenant_id = %(tenant)s"
        for name, at, table in (
            ("event", "received_at", "events_behaviorevent"),
            ("entry", "created_at", "auditlog_auditentry"),
        )
    },
}
MOMENTS = {
    "event_at": "SELECT min(received_at) FROM events_behaviorevent WHERE tenant_id = %(tenant)s",
    "entry_at": "SELECT min(created_at) FROM auditlog_auditentry WHERE tenant_id = %(tenant)s",
    "end_at": "SELECT %(end)s::timestamptz",
    "verified_at": "SELECT signed_at FROM auditlog_signedhead",
    "dropped_before": (
        "SELECT max((metadata->>'received_before')::timestamptz) FROM auditlog_auditentry"
        " WHERE event_type = 'events.dropped'"
    ),
}
# `{by:x}`: how many of the rows each kind of actor has.
BY = {
    "entries": ENTRIES,
    "verdicts": f"FROM (SELECT {LAST_BY} AS actor_kind {HIGH} AND {LAST} IS NOT NULL) e",
    "modes": f"{ENTRIES} AND event_type LIKE '%%.enforcement_changed'",
    "incidents": (
        f"FROM incidents_timelineentry t WHERE kind = 'opened' AND incident_id IN (SELECT id {INCIDENTS})"
    ),
    **{
        name: of(action)
        for name, action in {
            "changes": "agent.updated",
            "approvals": "approval.decided",
            "uses": "approval.used",
            "access_reviews": "access_review.done",
            "decisions": "access_review.decided",
            "overdue_reviews": "access_review.overdue",
            "suspensions": "agent.suspended",
            "revocations": "certificate.revoked",
            "holds": "certificate.held",
            "releases": "certificate.released",
            "delegations": "delegation.issued",
            "exports": "audit.exported",
            "erasures": "audit.erased",
        }.items()
    },
}
COUNTS = {**BY, **COUNTS}
GUARDED = (
    "SELECT bool_and(tgenabled <> 'D') FROM pg_trigger WHERE tgname LIKE 'auditlog_no_%%'"
    " AND tgrelid::regclass::text IN ('auditlog_auditentry', 'auditlog_leaf')"
)
REACH_BACK = (
    "SELECT greatest((SELECT min(received_at) FROM events_behaviorevent WHERE tenant_id = %(tenant)s),"
    " (SELECT min(created_at) FROM auditlog_auditentry WHERE tenant_id = %(tenant)s))"
    " > %(generated_at)s - interval '{} days'"
)
IF_NONE = "SELECT NOT EXISTS (SELECT {})"
