"""Events in partitions by ranges of their ids, reviews, and the functions by which the service makes partitions.

It owns no table, so these run as the owner (SECURITY DEFINER) and check their arguments. One drops a partition
only if the audit log names an archive of as many rows, and nothing of the last 30 days.
`events_partition_begin` makes a table apart, which the calling role may fill; `events_partition_attach` makes it
a partition, and takes the privilege back. `ops/privileges/listed.py` says who may call them.
"""

import compliance.core.identifiers
import django.db.models.deletion
from django.db import migrations, models

# Django makes a plain table; indexes come after this.
PARTITIONED = """
ALTER TABLE events_behaviorevent RENAME TO events_behaviorevent_plain;
ALTER INDEX events_behaviorevent_pkey RENAME TO events_behaviorevent_plain_pkey;
CREATE TABLE events_behaviorevent (
    LIKE events_behaviorevent_plain INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE,
    CONSTRAINT events_behaviorevent_pkey PRIMARY KEY (id)
) PARTITION BY RANGE (id);
CREATE TABLE events_behaviorevent_default PARTITION OF events_behaviorevent DEFAULT;
DROP TABLE events_behaviorevent_plain;
"""
INDEXES = [
    models.Index(fields=['tenant', '-occurred_at', '-id', 'risk_band'], name='events_tenant_list'),
    models.Index(fields=['agent', '-occurred_at', '-id', 'action_type', 'risk_band'], name='events_agent_list'),
    models.Index(fields=['tenant', 'action_type', '-occurred_at', '-id', 'risk_band'], name='events_type_list'),
    models.Index(condition=models.Q(('risk_band', 'low'), _negated=True), fields=['tenant', 'risk_band', '-occurred_at', '-id', 'action_type'], name='events_tenant_band_list'),
    models.Index(condition=models.Q(('risk_band', 'low'), _negated=True), fields=['agent', 'risk_band', '-occurred_at', '-id', 'action_type'], name='events_agent_band_list'),
    models.Index(fields=['agent', '-id'], name='events_agent_receipt'),
    models.Index(condition=models.Q(('risk_band', 'high')), fields=['received_at', 'agent'], name='events_high_receipt'),
]
# By months: that of now, and three more.
FIRST_PARTITIONS = """
SELECT events_partition_make(month AT TIME ZONE 'UTC', (month + interval '1 month') AT TIME ZONE 'UTC')
FROM generate_series(0, 3) AS ahead (months),
    LATERAL (SELECT date_trunc('month', now() AT TIME ZONE 'UTC') + make_interval(months => months)) AS at (month)
"""
FUNCTIONS = r"""
CREATE FUNCTION events_first_id(moment timestamptz) RETURNS uuid
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT (lpad(to_hex(floor(extract(epoch FROM moment) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

CREATE FUNCTION events_partition_attach(starts timestamptz, ends timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    name text := public.events_partition_name(starts, ends);
BEGIN
    IF session_user <> current_user THEN
        EXECUTE format('REVOKE ALL ON public.%I FROM %I', name, session_user);
    END IF;
    EXECUTE format('ALTER TABLE public.events_behaviorevent ATTACH PARTITION public.%I'
        ' FOR VALUES FROM (%L) TO (%L)', name, public.events_first_id(starts), public.events_first_id(ends));
    EXECUTE format('ALTER TABLE public.%I DROP CONSTRAINT within', name);
END
$$;

CREATE FUNCTION events_partition_begin(starts timestamptz, ends timestamptz) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    name text := public.events_partition_name(starts, ends);
BEGIN
    EXECUTE format('CREATE TABLE public.%I (LIKE public.events_behaviorevent INCLUDING DEFAULTS'
        ' INCLUDING CONSTRAINTS INCLUDING STORAGE INCLUDING INDEXES,'
        ' CONSTRAINT within CHECK (id >= %L AND id < %L))',
        name, public.events_first_id(starts), public.events_first_id(ends));
    IF session_user <> current_user THEN
        EXECUTE format('GRANT INSERT ON public.%I TO %I', name, session_user);
    END IF;
    RETURN name;
END
$$;

CREATE FUNCTION events_partition_drop(partition_name text, archive_sha256 text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $_$
DECLARE
    bound text; lower_id uuid; upper_id uuid; present bigint;
BEGIN
    SELECT pg_get_expr(child.relpartbound, child.oid) INTO bound
        FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
        WHERE inhparent = 'public.events_behaviorevent'::regclass AND child.relname = partition_name
        AND child.relnamespace = 'public'::regnamespace;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    lower_id := substring(bound FROM $bound$FROM \('([0-9a-f-]{36})'\)$bound$)::uuid;
    upper_id := substring(bound FROM $bound$TO \('([0-9a-f-]{36})'\)$bound$)::uuid;
    IF upper_id IS NULL OR upper_id > public.events_first_id(now() - interval '30 days') THEN
        RAISE EXCEPTION 'partition % may hold events of the last 30 days', partition_name
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    -- The service may add rows but change none: as many rows are the same rows.
    EXECUTE format('LOCK TABLE public.%I IN SHARE MODE', partition_name);
    EXECUTE format('SELECT count(*) FROM public.%I', partition_name) INTO present;
    IF NOT EXISTS (
        SELECT FROM public.auditlog_auditentry
        WHERE tenant_id = '00000000-0000-0000-0000-000000000000' AND event_type = 'events.archived'
        AND affected_id = partition_name AND metadata->>'sha256' = archive_sha256
        AND (metadata->>'rows')::bigint = present
        AND public.events_first_id((metadata->>'received_from')::timestamptz) = lower_id
        AND public.events_first_id((metadata->>'received_before')::timestamptz) = upper_id
    ) THEN
        RAISE EXCEPTION 'the audit log names no archive of the % rows of partition %', present, partition_name
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    EXECUTE format('DROP TABLE public.%I', partition_name);
    RETURN present;
END
$_$;

CREATE FUNCTION events_partition_make(starts timestamptz, ends timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    name text := public.events_partition_begin(starts, ends); moved bigint;
BEGIN
    EXECUTE format('WITH moved AS (DELETE FROM public.events_behaviorevent_default'
        ' WHERE id >= %L AND id < %L RETURNING *) INSERT INTO public.%I SELECT * FROM moved',
        public.events_first_id(starts), public.events_first_id(ends), name);
    GET DIAGNOSTICS moved = ROW_COUNT;
    PERFORM public.events_partition_attach(starts, ends);
    RETURN moved;
END
$$;

CREATE FUNCTION events_partition_name(starts timestamptz, ends timestamptz) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF starts IS NULL OR ends IS NULL OR starts < '2000-01-01T00:00:00Z' OR ends > now() + interval '5 years'
            OR starts >= ends OR ends - starts > interval '32 days'
            OR starts <> date_trunc('second', starts) OR ends <> date_trunc('second', ends) THEN
        RAISE EXCEPTION 'no partition of events reaches from % to %', starts, ends
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN 'events_behaviorevent_' || to_char(starts AT TIME ZONE 'UTC', CASE
        WHEN starts AT TIME ZONE 'UTC' = date_trunc('day', starts AT TIME ZONE 'UTC') THEN 'YYYYMMDD'
        ELSE 'YYYYMMDD_HH24MISS' END);
END
$$;

CREATE FUNCTION events_refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'reviews are append-only: % refused', TG_OP
        USING ERRCODE = 'restrict_violation';
END
$$;
"""
TRIGGERS = r"""
CREATE TRIGGER events_review_no_change BEFORE UPDATE OR DELETE ON events_eventreview
    FOR EACH ROW EXECUTE FUNCTION events_refuse_change();
CREATE TRIGGER events_review_no_truncate BEFORE TRUNCATE ON events_eventreview
    FOR EACH STATEMENT EXECUTE FUNCTION events_refuse_change();
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('agents', '0001_initial'),
        ('tenancy', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='PendingReview',
            fields=[
                ('id', models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ('agent_id', models.UUIDField(db_index=True)),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'ordering': ['created_at', 'id'],
            },
        ),
        migrations.CreateModel(
            name='ScorerProgress',
            fields=[
                ('name', models.CharField(max_length=32, primary_key=True, serialize=False)),
                ('upto', models.UUIDField()),
            ],
            options={
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='ScorerSnapshot',
            fields=[
                ('agent_id', models.UUIDField(primary_key=True, serialize=False)),
                ('tag', models.UUIDField()),
                ('state', models.BinaryField()),
                ('model_version', models.CharField(max_length=32)),
                ('taken_at', models.DateTimeField()),
            ],
            options={
                'ordering': ['agent_id'],
            },
        ),
        migrations.CreateModel(
            name='TenantBaseline',
            fields=[
                ('tenant', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='+', serialize=False, to='tenancy.tenant')),
                ('version', models.BigIntegerField()),
                ('baseline', models.BinaryField()),
            ],
            options={
                'ordering': ['tenant_id'],
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='TenantMarks',
            fields=[
                ('tenant', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='+', serialize=False, to='tenancy.tenant')),
                ('version', models.BigIntegerField()),
            ],
            options={
                'ordering': ['tenant_id'],
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='RiskWatermark',
            fields=[
                ('id', models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ('upto', models.UUIDField()),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='events_one_watermark')],
            },
        ),
        migrations.CreateModel(
            name='BehaviorEvent',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('action_type', models.CharField(choices=[('api_call', 'Api Call'), ('authentication_attempt', 'Authentication Attempt'), ('authentication_failure', 'Authentication Failure'), ('data_access', 'Data Access'), ('data_mutation', 'Data Mutation'), ('transaction_initiated', 'Transaction Initiated'), ('transaction_anomaly', 'Transaction Anomaly'), ('unauthorized_access_attempt', 'Unauthorized Access Attempt'), ('message_signed', 'Message Signed'), ('message_verification_failed', 'Message Verification Failed')], max_length=32)),
                ('risk_score', models.FloatField()),
                ('risk_band', models.CharField(choices=[('low', 'low'), ('medium', 'medium'), ('high', 'high')], max_length=8)),
                ('occurred_at', models.DateTimeField()),
                ('received_at', models.DateTimeField()),
                ('details', models.JSONField(default=dict)),
                ('session_id', models.CharField(max_length=255, null=True)),
                ('chain_id', models.UUIDField(null=True)),
                ('reasons', models.JSONField(default=list)),
                ('model_version', models.CharField(max_length=32)),
                ('agent', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='events', to='agents.agent')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'ordering': ['-occurred_at', '-id'],
                'constraints': [models.CheckConstraint(condition=models.Q(('action_type__in', ['api_call', 'authentication_attempt', 'authentication_failure', 'data_access', 'data_mutation', 'transaction_initiated', 'transaction_anomaly', 'unauthorized_access_attempt', 'message_signed', 'message_verification_failed'])), name='events_type_known'), models.CheckConstraint(condition=models.Q(('risk_score__gte', 0), ('risk_score__lte', 1)), name='events_score_in_range'), models.CheckConstraint(condition=models.Q(models.Q(('risk_band', 'low'), ('risk_score__lt', 0.3)), models.Q(('risk_band', 'medium'), ('risk_score__gte', 0.3), ('risk_score__lt', 0.85)), models.Q(('risk_band', 'high'), ('risk_score__gte', 0.85)), _connector='OR'), name='events_band_of_score')],
            },
        ),
        migrations.RunSQL(PARTITIONED),
        *[migrations.AddIndex("behaviorevent", index) for index in INDEXES],
        migrations.CreateModel(
            name='EventReview',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('event_id', models.UUIDField()),
                ('number', models.PositiveIntegerField()),
                ('verdict', models.CharField(choices=[('confirmed', 'Confirmed'), ('dismissed', 'Dismissed')], max_length=16)),
                ('note', models.CharField(max_length=1000, null=True)),
                ('case_number', models.CharField(max_length=64, null=True)),
                ('marked', models.JSONField(default=list)),
                ('actor_type', models.CharField(choices=[('user', 'User'), ('agent', 'Agent'), ('system', 'System')], max_length=16)),
                ('actor_id', models.CharField(max_length=255)),
                ('reviewed_at', models.DateTimeField()),
                ('agent', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='reviews', to='agents.agent')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'ordering': ['-reviewed_at', '-id'],
                'indexes': [models.Index(fields=['tenant', '-reviewed_at', '-id'], name='events_review_list'), models.Index(fields=['agent', '-reviewed_at', '-id'], name='events_review_of_agent')],
                'constraints': [models.UniqueConstraint(fields=('event_id', 'number'), name='events_review_in_order'), models.CheckConstraint(condition=models.Q(('verdict__in', ['confirmed', 'dismissed'])), name='events_review_verdict_known')],
            },
        ),
        migrations.CreateModel(
            name='MarkedPlace',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('event_id', models.UUIDField(db_index=True)),
                ('name', models.CharField(max_length=300)),
                ('marked_at', models.DateTimeField()),
                ('is_confirmed', models.BooleanField(db_default=True, default=True)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'ordering': ['-marked_at', '-id'],
                'indexes': [models.Index(fields=['tenant', '-marked_at', '-id'], name='events_marked_list')],
                'constraints': [models.UniqueConstraint(fields=('event_id', 'name'), name='events_marked_once')],
            },
        ),
        migrations.CreateModel(
            name='RiskDay',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateField()),
                ('events', models.BigIntegerField()),
                ('medium', models.BigIntegerField()),
                ('high', models.BigIntegerField()),
                ('score_sum', models.FloatField()),
                ('max_score', models.FloatField()),
                ('peak_score', models.FloatField()),
                ('peak_at', models.DateTimeField()),
                ('agent', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='risk_days', to='agents.agent')),
            ],
            options={
                'ordering': ['-day', 'agent_id', 'id'],
                'constraints': [models.UniqueConstraint(fields=('day', 'agent'), name='events_risk_day_once')],
            },
        ),
        migrations.CreateModel(
            name='Simulation',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('requested_by', models.CharField(max_length=255)),
                ('policies', models.JSONField()),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('running', 'Running'), ('ready', 'Ready'), ('failed', 'Failed')], default='pending', max_length=16)),
                ('events', models.BigIntegerField(default=0)),
                ('progress', models.FloatField(default=0.0)),
                ('checkpoint', models.BinaryField(default=b'')),
                ('findings', models.JSONField(null=True)),
                ('claims', models.PositiveIntegerField(default=0)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('leased_until', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField()),
                ('completed_at', models.DateTimeField(null=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'verbose_name': 'policy simulation',
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(fields=['tenant', '-created_at', '-id'], name='events_simulation_list'), models.Index(condition=models.Q(('status__in', ['pending', 'running'])), fields=['created_at'], name='events_simulation_unfinished')],
                'constraints': [models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'running', 'ready', 'failed'])), name='events_simulation_status_known'), models.CheckConstraint(condition=models.Q(models.Q(('findings__isnull', False), ('status', 'ready')), models.Q(models.Q(('status', 'ready'), _negated=True), ('findings__isnull', True)), _connector='OR'), name='events_simulation_findings_when_ready'), models.CheckConstraint(condition=models.Q(models.Q(('checkpoint', b''), ('completed_at__isnull', False), ('status__in', ['ready', 'failed'])), models.Q(('completed_at', None), ('status__in', ['pending', 'running'])), _connector='OR'), name='events_simulation_completed_when_over')],
            },
        ),
        migrations.RunSQL(FUNCTIONS),
        migrations.RunSQL(FIRST_PARTITIONS),
        migrations.RunSQL(TRIGGERS),
    ]
