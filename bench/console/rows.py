"""The statements that fill a database as years of use would, in their order; each fills one or two tables.

`id7(moment)` is a UUIDv7 of that moment, `pick(names, chance)` one of the names. Shares are those that the
service promises to be quick with: 2 % of events are medium, 0.2 % high, and most of them have a verdict.
"""

from typing import Final

DAYS: Final = 90
"""How far back all of it goes."""

FUNCTIONS: Final = """
CREATE FUNCTION pg_temp.id7(moment timestamptz) RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT (lpad(to_hex((extract(epoch FROM moment) * 1000)::bigint), 12, '0') || '7' || substr(r, 1, 3)
        || '8' || substr(r, 4, 15))::uuid FROM (SELECT md5(random()::text) AS r) AS fresh
$$;
CREATE FUNCTION pg_temp.pick(names text[], chance float8) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT names[1 + floor(chance * cardinality(names))::int]
$$;
CREATE FUNCTION pg_temp.before(days float8) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT now() - days * interval '1 day'
$$;
"""

TENANTS: Final = """
INSERT INTO tenancy_tenant (id, name, created_at, enforcement)
SELECT gen_random_uuid(), pg_temp.pick(ARRAY['Northwind Bank','Contoso Insurance','Fabrikam Payments',
    'Litware Brokers'], n / %(tenants)s::float8) || ' ' || n, pg_temp.before(100),
    CASE WHEN n %% 5 = 0 THEN 'observe' ELSE 'enforce' END
FROM generate_series(1, %(tenants)s - 1) AS n
"""
# The harness's own tenant has seven agents in ten.
AGENTS: Final = """
INSERT INTO agents_agent (id, name, description, model, model_hash, version, status, status_reason,
    status_changed_at, metadata, risk_score, risk_updated_at, last_high_risk_at, created_at, updated_at,
    tenant_id, would_have_stopped_at)
SELECT pg_temp.id7(made), pg_temp.pick(ARRAY['payments','orders','ledger','claims','market','support'], a)
        || '-' || pg_temp.pick(ARRAY['reconciliation','triage','watcher','assistant'], b) || '-' || n,
    'Works on its queue and reports to the desk', pg_temp.pick(ARRAY['gpt-5','claude-opus','mistral'], b),
    'sha256:' || md5(n::text), '2.' || n %% 10, status,
    CASE status WHEN 'suspended' THEN 'three high-risk events within 15 minutes' ELSE 'certified' END, made,
    '{"permitted_actions": ["search_orders", "read_ledger", "create_payment", "post_message"]}',
    power(a, 6), now(), CASE WHEN a > 0.7 THEN pg_temp.before(b * 60) END, made, made, tenant,
    CASE WHEN a > 0.99 THEN pg_temp.before(b * 5) END
FROM (
    SELECT n, random() AS a, random() AS b, pg_temp.before(10 + 80.0 * (1 - n / %(agents)s::float8)) AS made,
        CASE WHEN n %% 10 < 7 THEN %(tenant)s::uuid
            ELSE others.ids[1 + n %% cardinality(others.ids)] END AS tenant,
        CASE WHEN n %% 100 < 90 THEN 'active' WHEN n %% 100 < 94 THEN 'pending' WHEN n %% 100 < 96
            THEN 'suspended' ELSE 'retired' END AS status
    FROM generate_series(1, %(agents)s) AS n,
        (SELECT array_agg(id) AS ids FROM tenancy_tenant WHERE id <> %(tenant)s) AS others
) AS made
"""
_CERTIFICATE: Final = """
INSERT INTO certificates_certificate (id, tenant_id, agent_id, authority_id, serial_number, kms_key_arn,
    certificate_pem, claims, status, not_before, issued_at, expires_at, revoked_at, revocation_reason,
    revocation_code, first_crl_number, crl_shard, crl_entry)
SELECT pg_temp.id7(issued), agent.tenant_id, agent.id, model.authority_id, serial, 'bench:' || serial,
    model.certificate_pem, model.claims, {status}, issued, issued,
        issued + interval '365 days' * (0.3 + chance),
    {revoked_at}, {reason}, {code}, {list}, get_byte(uuid_send(agent.id), 15) %% 16, {entry}
FROM (SELECT * FROM certificates_certificate ORDER BY issued_at LIMIT 1) AS model,
    (SELECT *, '{mark}' || md5(id::text) || '000000' AS serial, created_at + interval '5 minutes' AS issued,
        random() AS chance FROM agents_agent ) AS agent
WHERE {agents} AND agent.id <> model.agent_id
"""
ACTIVE_CERTIFICATES: Final = _CERTIFICATE.format(
    status="'active'",
    revoked_at="NULL::timestamptz",
    reason="NULL",
    code="''",
    list="NULL::bigint",
    entry="NULL::bytea",
    mark="42",
    agents="agent.status = 'active'",
)
REVOKED_CERTIFICATES: Final = _CERTIFICATE.format(
    status="'revoked'",
    revoked_at="issued + interval '3 days'",
    reason="'superseded by a renewal'",
    code="'superseded'",
    list="1",
    entry="decode('00', 'hex')",
    mark="41",
    agents="agent.chance < 0.5",
)
ISSUANCES: Final = """
INSERT INTO certificates_issuance (id, serial_number, key_uri, state, error, created_at, finished_at,
    agent_id, tenant_id)
SELECT pg_temp.id7(issued_at), serial_number, kms_key_arn, 'completed', '', issued_at, issued_at, agent_id,
    tenant_id
FROM certificates_certificate WHERE serial_number NOT IN (SELECT serial_number FROM certificates_issuance)
"""
HOLDS: Final = """
INSERT INTO certificates_endedhold (id, held_at, ended_at, crl_entry, hold_crl_number, end_crl_number,
    authority_id, certificate_id)
SELECT gen_random_uuid(), issued_at, issued_at + interval '1 day', decode('00', 'hex'), 1, 1, authority_id, id
FROM certificates_certificate ORDER BY id LIMIT 500
"""
EVENTS: Final = """
INSERT INTO events_behaviorevent (id, tenant_id, agent_id, action_type, risk_score, risk_band, occurred_at,
    received_at, details, session_id, chain_id, reasons, model_version)
SELECT pg_temp.id7(moment), (%(tenants)s::uuid[])[at], (%(agents)s::uuid[])[at],
    pg_temp.pick(ARRAY['api_call','api_call','api_call','api_call','data_access','data_access',
        'data_access','data_mutation','transaction_initiated','authentication_attempt'], kind),
    CASE band WHEN 'low' THEN 0.29 * kind WHEN 'medium' THEN 0.3 + 0.5 * kind ELSE 0.85 + 0.14 * kind END,
    band, moment - chance * interval '2 seconds', moment,
    jsonb_build_object('tool', 'search_orders', 'table', 'positions', 'rows', floor(kind * 40),
        'host', 'db-' || floor(kind * 20) || '.internal.example', 'request_id', at),
    'session-' || floor(n / 20)::bigint, NULL,
    CASE band WHEN 'low' THEN '[]'::jsonb ELSE '[{"name": "scope", "observed": "create_payment",
        "expected": "read_ledger", "weight": 2.1}, {"name": "new_host", "observed": "paste.example",
        "expected": "known hosts", "weight": 1.4}]'::jsonb END,
    'bench'
FROM (
    SELECT n, now() - (1 - n / %(total)s::float8) * interval '90 days' AS moment, random() AS chance,
        random() AS kind, 1 + floor(power(random(), 3) * %(count)s)::int AS at,
        CASE WHEN share < 0.002 THEN 'high' WHEN share < 0.022 THEN 'medium' ELSE 'low' END AS band
    FROM (SELECT n, random() AS share FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n) AS drawn
) AS made
"""
# One in twenty waits, and all of the last hours.
REVIEWS: Final = """
INSERT INTO events_eventreview (id, event_id, number, verdict, note, marked, actor_type, actor_id,
    reviewed_at,
    agent_id, tenant_id, case_number)
SELECT pg_temp.id7(received_at + delay), id, 1,
    CASE WHEN risk_band = 'high' AND a < 0.6 THEN 'confirmed' ELSE 'dismissed' END,
    CASE WHEN a < 0.4 THEN 'seen before at this desk, case ' || floor(a * 10000) END, '[]', 'user',
    (%(people)s::text[])[1 + floor(a * %(many)s)::int], received_at + delay, agent_id, tenant_id,
    CASE WHEN a < 0.2 THEN 'CASE-' || floor(a * 10000) END
FROM (
    SELECT *, random() AS a, random() * interval '5 hours' AS delay FROM events_behaviorevent
    WHERE risk_band <> 'low' AND received_at < now() - interval '6 hours'
) AS event WHERE random() < 0.95
"""
OPEN: Final = """
INSERT INTO inbox_openevent (event_id, action_type, risk_band, risk_score, received_at, agent_id, tenant_id)
SELECT id, action_type, risk_band, risk_score, received_at, agent_id, tenant_id
    FROM events_behaviorevent AS event
WHERE risk_band <> 'low' AND NOT EXISTS (SELECT FROM events_eventreview WHERE event_id = event.id)
"""
MARKS: Final = """
INSERT INTO events_markedplace (id, event_id, name, marked_at, tenant_id, is_confirmed)
SELECT pg_temp.id7(reviewed_at), event_id, 'paste-' || left(md5(event_id::text), 6) || '.example',
    reviewed_at,
    tenant_id, verdict = 'confirmed'
FROM events_eventreview WHERE verdict = 'confirmed' AND random() < 0.5
"""
QUEUES: Final = """
INSERT INTO inbox_agentqueue (agent_id, assignee, snoozed_at, snoozed_until, updated_at, tenant_id)
SELECT agent_id, CASE WHEN a < 0.3 THEN (%(people)s::text[])[1 + floor(a * %(many)s)::int] END,
    CASE WHEN a > 0.9 THEN now() END, CASE WHEN a > 0.9 THEN now() + interval '3 days' END, now(), tenant_id
FROM (SELECT agent_id, tenant_id, random() AS a FROM inbox_openevent GROUP BY 1, 2) AS waiting
"""
COMMENTS: Final = """
INSERT INTO inbox_inboxcomment (id, event_id, kind, text, case_number, actor_type, actor_id, created_at,
    agent_id, tenant_id)
SELECT pg_temp.id7(reviewed_at), event_id, 'comment', 'Asked the desk: they know this host', case_number,
    'user',
    actor_id, reviewed_at, agent_id, tenant_id
FROM events_eventreview WHERE random() < 0.1
"""
RISK_DAYS: Final = """
INSERT INTO events_riskday (day, events, medium, high, score_sum, max_score, peak_score, peak_at, agent_id)
SELECT (received_at AT TIME ZONE 'UTC')::date, count(*), count(*) FILTER (WHERE risk_band = 'medium'),
    count(*) FILTER (WHERE risk_band = 'high'), sum(risk_score), max(risk_score), max(risk_score),
    max(received_at), agent_id
FROM events_behaviorevent GROUP BY 1, agent_id
"""
INCIDENTS: Final = """
INSERT INTO incidents_incident (id, agent_id, agent_name, title, cause, state, severity, owner, detected_at,
    opened_at, closed_at, updated_at, serious_harm, dora_class, announced, next_due_at, tenant_id)
SELECT pg_temp.id7(opened), id, name, 'Automatic revocation of ' || name, 'threshold', state,
    pg_temp.pick(ARRAY['low','medium','high','critical'], b),
        (%(people)s::text[])[1 + floor(a * %(many)s)::int],
    opened, opened, CASE WHEN state = 'closed' THEN opened + interval '2 days' END, opened, 'undecided',
    'undecided', '{}', CASE WHEN state <> 'closed' THEN now() + b * interval '10 days' END, tenant_id
FROM (
    SELECT id, name, tenant_id, random() AS a, random() AS b, pg_temp.before(10 + 70 * random()) AS opened,
        CASE WHEN row_number() OVER (ORDER BY id) %% 10 < 8 THEN 'closed' ELSE 'open' END AS state
    FROM agents_agent ORDER BY id LIMIT 2000
) AS agent
"""
TIMELINES: Final = """
INSERT INTO incidents_timelineentry (id, kind, at, actor_kind, actor_id, text, serial_number, data,
    incident_id)
SELECT pg_temp.id7(opened_at), CASE WHEN n = 1 THEN 'opened' ELSE 'note' END,
    opened_at + n * interval '1 hour',
    'person', (%(people)s::text[])[1 + n %% %(many)s], 'Called the desk again, step ' || n, '', NULL, id
FROM incidents_incident, generate_series(1, 20) AS n
"""
WEBHOOKS: Final = """
INSERT INTO webhooks_webhook (id, url, events, description, active, secret, secret_hint, consecutive_failures,
    created_at, updated_at, tenant_id, pace, failed_deliveries)
SELECT gen_random_uuid(), 'https://hooks-' || n || '.example/agents',
    ARRAY['certificate.revoked','risk.alert'],
    'Pages the desk', n %% 20 <> 0, decode('00', 'hex'), '…here', CASE WHEN n %% 15 = 0 THEN 9 ELSE 0 END,
    pg_temp.before(80), pg_temp.before(80),
    CASE WHEN n %% 10 < 7 THEN %(tenant)s::uuid ELSE others.ids[1 + n %% cardinality(others.ids)] END,
        'quick', 0
FROM generate_series(1, 200) AS n,
    (SELECT array_agg(id) AS ids FROM tenancy_tenant WHERE id <> %(tenant)s) AS others
"""
MESSAGES: Final = """
INSERT INTO webhooks_message (id, event, body, created_at, tenant_id)
SELECT pg_temp.id7(received_at), 'risk.alert', convert_to('{"id":"' || id || '"}', 'UTF8'), received_at,
    tenant_id
FROM events_behaviorevent WHERE risk_band = 'high'
UNION ALL
SELECT pg_temp.id7(reviewed_at), 'risk.alert', convert_to('{"id":"' || id || '"}', 'UTF8'), reviewed_at,
    tenant_id
FROM events_eventreview
"""
DELIVERIES: Final = """
INSERT INTO webhooks_delivery (id, status, trigger, attempt_count, max_attempts, created_at, completed_at,
    message_id, webhook_id)
SELECT pg_temp.id7(message.created_at), CASE WHEN chance < 0.95 THEN 'succeeded' ELSE 'failed' END, 'event',
    CASE WHEN chance < 0.95 THEN 1 ELSE 4 END, 4, message.created_at,
        message.created_at + interval '1 second',
    message.id, hooks.ids[1 + floor(power(chance, 2) * cardinality(hooks.ids))::int]
FROM (SELECT *, random() AS chance FROM webhooks_message) AS message
JOIN (SELECT tenant_id, array_agg(id ORDER BY id) AS ids FROM webhooks_webhook GROUP BY 1) AS hooks
    USING (tenant_id)
"""
ATTEMPTS: Final = """
INSERT INTO webhooks_attempt (id, number, url, started_at, duration_ms, response_status, response_body, error,
    delivery_id)
SELECT pg_temp.id7(delivery.created_at), n, webhook.url, delivery.created_at + n * interval '1 second', 45,
    CASE WHEN status = 'succeeded' THEN 200 ELSE 500 END, 'ok', NULL, delivery.id
FROM webhooks_delivery AS delivery JOIN webhooks_webhook AS webhook ON webhook.id = webhook_id,
    generate_series(1, attempt_count) AS n
"""
KEYS: Final = """
INSERT INTO tenancy_apikey (id, name, digest, hint, scopes, created_at, last_used_at, tenant_id)
SELECT gen_random_uuid(), 'desk ' || n, md5(n::text) || md5(n::text), 'service_live_…' || n,
    ARRAY['agents:read','events:write'], pg_temp.before(80), now(),
    (SELECT id FROM tenancy_tenant ORDER BY md5(id::text || n) LIMIT 1)
FROM generate_series(1, 500) AS n
"""
IDEMPOTENCY: Final = """
INSERT INTO api_idempotencyrecord (id, tenant_id, key, fingerprint, status, body, created_at)
SELECT gen_random_uuid(), %(tenant)s, 'request-' || n, md5(n::text) || md5(n::text), 201, '{}',
    now() - n * interval '1 second'
FROM generate_series(1, 50000) AS n
"""
REPORTS: Final = """
INSERT INTO reports_report (id, type, status, period_start, period_end, document, pdf, digest, attempts,
    created_at, completed_at, tenant_id)
SELECT pg_temp.id7(made), 'mica', 'ready', made - interval '30 days', made, repeat('{"evidence": 1}', 5000),
    convert_to(repeat(md5(n::text), 2000), 'UTF8'), md5(n::text) || md5(n::text), 1, made, made,
    (SELECT id FROM tenancy_tenant ORDER BY md5(id::text || n) LIMIT 1)
FROM (SELECT n, pg_temp.before(n * 0.15) AS made FROM generate_series(1, 500) AS n) AS drawn
"""
LISTS: Final = """
INSERT INTO certificates_revocationlist (id, number, this_update, next_update, entry_count, authority_id,
    scope, size)
SELECT gen_random_uuid(), newest.number + n, now() - (5001 - n) * interval '20 minutes',
    now() - (5001 - n) * interval '20 minutes' + interval '1 day', 5000, authority_id, newest.scope, 180000
FROM (SELECT * FROM certificates_revocationlist WHERE scope = 'full' ORDER BY id DESC LIMIT 1) AS newest,
    generate_series(1, 5000) AS n
"""
# What the service writes about agents, webhooks and people, in about its shares.
AUDIT: Final = """
INSERT INTO auditlog_auditentry (id, tenant_id, event_type, actor_type, actor_kind, actor_id, description,
    affected_id, metadata, created_at)
SELECT pg_temp.id7(moment), CASE WHEN kind > 0.99 THEN '00000000-0000-0000-0000-000000000000'::uuid
        ELSE agent.tenants[at] END, event_type,
    CASE WHEN is_person THEN 'user' ELSE 'system' END, CASE WHEN is_person THEN 'person' ELSE 'system' END,
    CASE WHEN is_person THEN (%(people)s::text[])[1 + floor(kind * %(many)s)::int] ELSE 'system:sweeper' END,
    CASE event_type WHEN 'event.reviewed' THEN 'Event reviewed: ordinary'
        WHEN 'delegation.issued' THEN 'Delegation token issued to agent ' || agent.names[at]
        ELSE 'Agent ' || agent.names[at] || ' updated' END,
    agent.ids[at]::text,
    CASE WHEN is_person THEN jsonb_build_object('reason', 'asked by the desk in case ' || floor(kind * 9000),
            'note', pg_temp.pick(ARRAY['known host','month end','odd transfers','new vendor'], kind))
        ELSE jsonb_build_object('changed', jsonb_build_array('version'), 'version', n) END, moment
FROM (
    SELECT n, now() - (1 - n / %(entries)s::float8) * interval '90 days' AS moment, random() AS kind,
        random() < 0.3 AS is_person, 1 + floor(power(random(), 3) * %(count)s)::int AS at,
        pg_temp.pick(ARRAY['agent.updated','agent.created','certificate.issued','event.reviewed',
            'event.reviewed','delegation.issued','delegation.issued','event.high_risk'],
                random()) AS event_type
    FROM generate_series(1, %(entries)s) AS n
) AS drawn,
    (SELECT array_agg(id ORDER BY id) AS ids, array_agg(tenant_id ORDER BY id) AS tenants,
        array_agg(name ORDER BY id) AS names FROM agents_agent) AS agent
"""
