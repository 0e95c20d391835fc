"""Audit entries, their tree, and what the database itself enforces of both: entries and leaves do not change,
every entry is queued, the tree only grows, erasures and drops are recorded.

The service can change the tree only through functions that run as the owner of the tables (SECURITY DEFINER)
and check their arguments. `ops/privileges/listed.py` says who may call them.
"""

import auditlog.vocabulary
import compliance.core.identifiers
import datetime
from django.db import migrations, models

FUNCTIONS = r"""
CREATE FUNCTION auditlog_drop(horizon timestamptz, most bigint, told jsonb) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    low bigint; sealed bigint; high bigint; gone uuid[];
BEGIN
    IF horizon IS NULL OR most IS NULL OR horizon > now() - interval '183 days' THEN
        RAISE EXCEPTION 'audit entries of the last 183 days are kept' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF (told ->> 'event_type' = 'audit.dropped' AND jsonb_typeof(told -> 'metadata') = 'object'
        AND (told ->> 'tenant_id')::uuid = '00000000-0000-0000-0000-000000000000'
        AND (told ->> 'created_at')::timestamptz
            BETWEEN now() - interval '10 minutes' AND now() + interval '10 minutes') IS NOT TRUE
    THEN
        RAISE EXCEPTION 'a drop is recorded' USING ERRCODE = 'insufficient_privilege';
    END IF;
    SELECT minimum_index, size INTO low, sealed FROM public.auditlog_treehead FOR UPDATE;
    high := least(sealed, low + most);
    SELECT least(high, min(found.index)) INTO high FROM (
        SELECT l.index FROM public.auditlog_leaf l JOIN public.auditlog_auditentry e ON e.id = l.entry_id
        WHERE l.index >= low AND l.index < high AND e.created_at >= horizon ORDER BY l.index LIMIT 1
    ) found;
    IF high <= low THEN
        RETURN 0;
    END IF;
    SELECT array_agg(l.entry_id) INTO gone FROM public.auditlog_leaf l WHERE l.index >= low AND l.index < high;
    PERFORM public.auditlog_record(told || jsonb_build_object(
        'description', format('Contents of %s entries dropped after their retention', high - low),
        'metadata', told -> 'metadata' || jsonb_build_object('from', low, 'to', high)
    ));
    SET LOCAL auditlog.allowed = 'DELETE auditlog_auditentry';
    DELETE FROM public.auditlog_auditentry WHERE id = ANY(gone);
    SET LOCAL auditlog.allowed = 'DELETE auditlog_leaf';
    DELETE FROM public.auditlog_leaf WHERE index >= low AND index < high;
    SET LOCAL auditlog.allowed = '';
    UPDATE public.auditlog_treehead SET minimum_index = high WHERE minimum_index < high;
    RETURN high - low;
END
$$;

CREATE FUNCTION auditlog_enqueue() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    INSERT INTO public.auditlog_pendingentry (entry_id) VALUES (NEW.id);
    RETURN NULL;
END
$$;

CREATE FUNCTION auditlog_erase(erased_id uuid, parts text[], leaf bytea, told jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    names text[] := '{head,actor_id,affected_id,description,metadata}';
    tenant uuid; place bigint; kept bytea; gone jsonb; part text; n integer;
BEGIN
    SELECT e.tenant_id INTO STRICT tenant FROM public.auditlog_auditentry e WHERE e.id = erased_id;
    PERFORM FROM public.auditlog_auditentry e WHERE e.tenant_id = tenant AND e.id = erased_id FOR UPDATE;
    SELECT l.index, l.salts, coalesce(l.erased, '{}') INTO place, kept, gone
        FROM public.auditlog_leaf l WHERE l.entry_id = erased_id FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no sealed entry %', erased_id USING ERRCODE = 'no_data_found';
    END IF;
    IF (told ->> 'event_type' = 'audit.erased' AND told ->> 'affected_id' = erased_id::text
        AND (told ->> 'tenant_id')::uuid = tenant AND told -> 'metadata' -> 'parts' ?& parts
        AND (told ->> 'created_at')::timestamptz
            BETWEEN now() - interval '10 minutes' AND now() + interval '10 minutes') IS NOT TRUE
    THEN
        RAISE EXCEPTION 'an erasure is recorded' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NOT EXISTS (
        SELECT FROM public.auditlog_tile t WHERE t.level = 0 AND t.index = place / 256
            AND substring(t.hashes FROM (32 * (place % 256) + 1)::integer FOR 32) = sha256('\x00'::bytea || leaf)
    ) THEN
        RAISE EXCEPTION 'not the leaf at %', place USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOREACH part IN ARRAY parts LOOP
        n := array_position(names, part);
        IF n IS NULL OR n = 1 OR gone ? part THEN
            RAISE EXCEPTION 'the part % cannot be erased', part USING ERRCODE = 'invalid_parameter_value';
        END IF;
        kept := overlay(kept PLACING '\x00000000000000000000000000000000'::bytea FROM 16 * (n - 1) + 1 FOR 16);
        gone := gone || jsonb_build_object(part, encode(substring(leaf FROM 32 * (n - 1) + 2 FOR 32), 'hex'));
    END LOOP;
    PERFORM public.auditlog_record(told);
    SET LOCAL auditlog.allowed = 'UPDATE auditlog_leaf';
    UPDATE public.auditlog_leaf SET salts = kept, erased = gone WHERE entry_id = erased_id;
    SET LOCAL auditlog.allowed = 'UPDATE auditlog_auditentry';
    UPDATE public.auditlog_auditentry SET
        actor_id = CASE WHEN 'actor_id' = ANY(parts) THEN 'erased' ELSE actor_id END,
        affected_id = CASE WHEN 'affected_id' = ANY(parts) THEN NULL ELSE affected_id END,
        description = CASE WHEN 'description' = ANY(parts) THEN NULL ELSE description END,
        metadata = CASE WHEN 'metadata' = ANY(parts) THEN NULL ELSE metadata END
        WHERE tenant_id = tenant AND id = erased_id;
    SET LOCAL auditlog.allowed = '';
END
$$;

CREATE FUNCTION auditlog_only_grows() RETURNS trigger
LANGUAGE plpgsql AS $_$
DECLARE
    grows boolean := false;
BEGIN
    IF TG_OP = 'UPDATE' AND TG_TABLE_NAME = 'auditlog_tile' THEN
        grows := (OLD.level, OLD.index) = (NEW.level, NEW.index)
            AND substring(NEW.hashes FOR length(OLD.hashes)) = OLD.hashes;
    ELSIF TG_OP = 'UPDATE' AND TG_TABLE_NAME = 'auditlog_treehead' THEN
        grows := (NEW.size > OLD.size OR (NEW.size, NEW.root) = (OLD.size, OLD.root))
            AND NEW.minimum_index >= OLD.minimum_index;
    ELSIF TG_OP = 'UPDATE' THEN
        grows := (OLD.size, OLD.root, OLD.signed_at) = (NEW.size, NEW.root, NEW.signed_at)
            AND starts_with(NEW.note, OLD.note)
            AND substr(NEW.note, length(OLD.note) + 1) ~ '^(— [^ +\n]+ [A-Za-z0-9+/]+=*\n)*$'
            AND cardinality(string_to_array(NEW.note, E'\n')) <= 69;
    END IF;
    IF NOT grows THEN
        RAISE EXCEPTION 'the audit log only grows: % of % refused', TG_OP, TG_TABLE_NAME
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END
$_$;

CREATE FUNCTION auditlog_record(entry jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    made public.auditlog_auditentry := jsonb_populate_record(NULL::public.auditlog_auditentry, entry);
BEGIN
    INSERT INTO public.auditlog_auditentry (
        id, tenant_id, event_type, actor_type, actor_kind, actor_id, description, affected_id, metadata, created_at
    ) VALUES (
        made.id, made.tenant_id, made.event_type, made.actor_type, made.actor_kind, made.actor_id,
        made.description, made.affected_id, made.metadata, made.created_at
    );
END
$$;

CREATE FUNCTION auditlog_refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('auditlog.allowed', true) = TG_OP || ' ' || TG_TABLE_NAME THEN
        RETURN coalesce(NEW, OLD);
    END IF;
    RAISE EXCEPTION 'audit entries are append-only: % of % refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END
$$;

CREATE FUNCTION auditlog_seal(
    old_size bigint, pending_ids bigint[], entry_ids uuid[], salts bytea[], tile_levels smallint[],
    tile_indexes bigint[], tiles bytea[], new_root bytea
) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    added bigint := cardinality(pending_ids); taken bigint;
BEGIN
    UPDATE public.auditlog_treehead SET size = old_size + added, root = new_root WHERE size = old_size;
    IF NOT FOUND OR added = 0 OR added <> cardinality(entry_ids) OR added <> cardinality(salts) THEN
        RAISE EXCEPTION 'the tree does not have % leaves', old_size USING ERRCODE = 'serialization_failure';
    END IF;
    IF octet_length(new_root) IS DISTINCT FROM 32
        OR EXISTS (SELECT FROM unnest(salts) AS s (salt) WHERE octet_length(salt) IS DISTINCT FROM 80)
        OR EXISTS (
            SELECT FROM unnest(tile_levels, tile_indexes, tiles) AS t (level, index, hashes)
            WHERE (level BETWEEN 0 AND 7 AND octet_length(hashes) > 0 AND octet_length(hashes)
                = 32 * least(256, ((old_size + added) >> (8 * level)) - 256 * index)
                AND (old_size + added) >> (8 * level) > old_size >> (8 * level)
                AND index >= (old_size >> (8 * level)) / 256) IS NOT TRUE
        )
        OR cardinality(tiles) IS DISTINCT FROM (
            SELECT sum((((old_size + added) >> (8 * n)) - 1) / 256 - (old_size >> (8 * n)) / 256 + 1)
            FROM generate_series(0, 7) AS level (n)
            WHERE (old_size + added) >> (8 * n) > old_size >> (8 * n)
        )
    THEN
        RAISE EXCEPTION 'no tree of % leaves has these tiles', old_size + added
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    DELETE FROM public.auditlog_pendingentry p USING unnest(pending_ids, entry_ids) AS s (id, entry_id)
        WHERE p.id = s.id AND p.entry_id = s.entry_id;
    GET DIAGNOSTICS taken = ROW_COUNT;
    IF taken <> added THEN
        RAISE EXCEPTION '% of % entries are not pending', added - taken, added
            USING ERRCODE = 'serialization_failure';
    END IF;
    INSERT INTO public.auditlog_leaf (index, entry_id, salts)
        SELECT old_size + s.n - 1, s.entry_id, s.salt
        FROM unnest(entry_ids, salts) WITH ORDINALITY AS s (entry_id, salt, n);
    INSERT INTO public.auditlog_tile (level, index, hashes)
        SELECT * FROM unnest(tile_levels, tile_indexes, tiles)
        ON CONFLICT (level, index) DO UPDATE SET hashes = excluded.hashes;
    RETURN old_size + added;
END
$$;

CREATE FUNCTION auditlog_states_tree() RETURNS trigger
LANGUAGE plpgsql AS $_$
BEGIN
    IF split_part(NEW.note, E'\n', 2) <> NEW.size::text
        OR split_part(NEW.note, E'\n', 3) <> encode(NEW.root, 'base64')
        OR substring(NEW.note FROM position(E'\n\n' IN NEW.note) + 2)
            !~ '^(— [^ +\n]+ [A-Za-z0-9+/]+=*\n)+$'
        OR NOT EXISTS (
            SELECT FROM public.auditlog_treehead h
            WHERE (h.size, h.root) = (NEW.size, NEW.root) AND h.size > 0
        )
    THEN
        RAISE EXCEPTION 'not a checkpoint of the tree: % leaves', NEW.size
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END
$_$;
"""
TRIGGERS = r"""
CREATE TRIGGER auditlog_enqueue AFTER INSERT ON auditlog_auditentry
    FOR EACH ROW EXECUTE FUNCTION auditlog_enqueue();
CREATE TRIGGER auditlog_no_change BEFORE UPDATE OR DELETE ON auditlog_auditentry
    FOR EACH ROW EXECUTE FUNCTION auditlog_refuse_change();
CREATE TRIGGER auditlog_no_change BEFORE UPDATE OR DELETE ON auditlog_leaf
    FOR EACH ROW EXECUTE FUNCTION auditlog_refuse_change();
CREATE TRIGGER auditlog_no_change BEFORE UPDATE OR DELETE ON auditlog_signedhead
    FOR EACH ROW EXECUTE FUNCTION auditlog_only_grows();
CREATE TRIGGER auditlog_no_change BEFORE UPDATE OR DELETE ON auditlog_tile
    FOR EACH ROW EXECUTE FUNCTION auditlog_only_grows();
CREATE TRIGGER auditlog_no_change BEFORE UPDATE OR DELETE ON auditlog_treehead
    FOR EACH ROW EXECUTE FUNCTION auditlog_only_grows();
CREATE TRIGGER auditlog_no_truncate BEFORE TRUNCATE ON auditlog_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION auditlog_refuse_change();
CREATE TRIGGER auditlog_no_truncate BEFORE TRUNCATE ON auditlog_leaf
    FOR EACH STATEMENT EXECUTE FUNCTION auditlog_refuse_change();
CREATE TRIGGER auditlog_no_truncate BEFORE TRUNCATE ON auditlog_signedhead
    FOR EACH STATEMENT EXECUTE FUNCTION auditlog_only_grows();
CREATE TRIGGER auditlog_no_truncate BEFORE TRUNCATE ON auditlog_tile
    FOR EACH STATEMENT EXECUTE FUNCTION auditlog_only_grows();
CREATE TRIGGER auditlog_no_truncate BEFORE TRUNCATE ON auditlog_treehead
    FOR EACH STATEMENT EXECUTE FUNCTION auditlog_only_grows();
CREATE TRIGGER auditlog_states_tree BEFORE INSERT ON auditlog_signedhead
    FOR EACH ROW EXECUTE FUNCTION auditlog_states_tree();
"""
STORAGE = r"""
ALTER TABLE auditlog_tile ALTER COLUMN hashes SET STORAGE EXTERNAL;
"""
# `auditlog.finding.words.EntryWords` must be the same expression. The list of what is not merged into the index yet
# stays short: who merges it is an insert that waits.
INDEX = """
CREATE INDEX auditlog_words ON auditlog_auditentry USING gin ((
    array_to_tsvector(ARRAY[tenant_id::text]) || to_tsvector('simple', translate(
        coalesce(description, '')
            || ' ' || coalesce(metadata ->> 'reason', '')
            || ' ' || coalesce(metadata ->> 'note', '')
            || ' ' || coalesce(metadata ->> 'comment', ''),
        '-_./:@', '      '))
)) WITH (gin_pending_list_limit = 256)
"""
EMPTY_TREE = "INSERT INTO auditlog_treehead (id, size, root, minimum_index) VALUES (1, 0, sha256(''), 0)"


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Leaf',
            fields=[
                ('index', models.BigIntegerField(primary_key=True, serialize=False)),
                ('entry_id', models.UUIDField(unique=True)),
                ('salts', models.BinaryField()),
                ('erased', models.JSONField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='PendingEntry',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('entry_id', models.UUIDField()),
            ],
        ),
        migrations.CreateModel(
            name='TreeTile',
            fields=[
                ('pk', models.CompositePrimaryKey('level', 'index', blank=True, editable=False, primary_key=True, serialize=False)),
                ('level', models.SmallIntegerField()),
                ('index', models.BigIntegerField()),
                ('hashes', models.BinaryField()),
            ],
            options={
                'db_table': 'auditlog_tile',
            },
        ),
        migrations.CreateModel(
            name='WitnessState',
            fields=[
                ('name', models.CharField(max_length=255, primary_key=True, serialize=False)),
                ('size', models.BigIntegerField(default=0)),
                ('cosigned_at', models.DateTimeField(null=True)),
                ('tried_at', models.DateTimeField(null=True)),
                ('problem', models.CharField(blank=True, default='', max_length=255)),
            ],
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('tenant_id', models.UUIDField()),
                ('event_type', models.CharField(choices=auditlog.vocabulary.audit_actions, max_length=64)),
                ('actor_type', models.CharField(choices=[('user', 'User'), ('agent', 'Agent'), ('system', 'System')], max_length=16)),
                ('actor_kind', models.CharField(choices=[('person', 'Person'), ('api_key', 'Api Key'), ('agent', 'Agent'), ('system', 'System')], max_length=16)),
                ('actor_id', models.CharField(max_length=255)),
                ('description', models.TextField(null=True)),
                ('affected_id', models.CharField(max_length=255, null=True)),
                ('metadata', models.JSONField(null=True)),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'verbose_name_plural': 'audit entries',
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(fields=['tenant_id', '-created_at', '-id'], name='auditlog_tenant_time'), models.Index(fields=['tenant_id', 'event_type', '-created_at', '-id'], name='auditlog_tenant_type'), models.Index(fields=['tenant_id', 'affected_id', '-created_at'], name='auditlog_tenant_affected'), models.Index(fields=['actor_id', '-created_at', '-id'], name='auditlog_actor_time')],
                'constraints': [models.CheckConstraint(condition=models.Q(('actor_type__in', ['user', 'agent', 'system'])), name='auditlog_actor_type_known'), models.CheckConstraint(condition=models.Q(('actor_kind__in', ['person', 'api_key', 'agent', 'system'])), name='auditlog_actor_kind_known'), models.CheckConstraint(condition=models.Q(('created_at__gte', datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.timezone.utc)), ('created_at__lt', datetime.datetime(9999, 1, 1, 0, 0, tzinfo=datetime.timezone.utc))), name='auditlog_created_at_sane')],
            },
        ),
        migrations.CreateModel(
            name='LogKey',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=255)),
                ('public_key', models.BinaryField(unique=True)),
                ('key_uri', models.CharField(max_length=2000)),
                ('created_at', models.DateTimeField()),
                ('active_from', models.DateTimeField()),
                ('retired_at', models.DateTimeField(null=True)),
                ('destroyed_at', models.DateTimeField(null=True)),
            ],
            options={
                'ordering': ['-active_from', '-id'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('retired_at', None)), fields=('retired_at',), name='auditlog_one_lasting_log_key', nulls_distinct=False), models.CheckConstraint(condition=models.Q(('retired_at', None), ('retired_at__gte', models.F('active_from')), _connector='OR'), name='auditlog_log_key_retired_after_active'), models.CheckConstraint(condition=models.Q(('destroyed_at', None), models.Q(('destroyed_at__gt', models.F('retired_at')), ('retired_at__isnull', False)), _connector='OR'), name='auditlog_log_key_destroyed_after_retired')],
            },
        ),
        migrations.CreateModel(
            name='SignedHead',
            fields=[
                ('size', models.BigIntegerField(primary_key=True, serialize=False)),
                ('root', models.BinaryField()),
                ('note', models.TextField()),
                ('signed_at', models.DateTimeField()),
                ('has_quorum', models.BooleanField(default=False)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('has_quorum', True)), fields=['size'], name='auditlog_witnessed')],
            },
        ),
        migrations.CreateModel(
            name='TreeHead',
            fields=[
                ('id', models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ('size', models.BigIntegerField()),
                ('root', models.BinaryField()),
                ('minimum_index', models.BigIntegerField(default=0)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='auditlog_one_tree')],
            },
        ),
        migrations.RunSQL(FUNCTIONS),
        migrations.RunSQL(TRIGGERS),
        migrations.RunSQL(STORAGE),
        migrations.RunSQL(INDEX),
        migrations.RunSQL(EMPTY_TREE),
    ]
