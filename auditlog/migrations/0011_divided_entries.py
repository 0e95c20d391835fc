"""Entries may lie on nodes of Citus: who queues them there, and functions that record what they do themselves.

On Citus one role changes the rows of a transaction, and triggers of a shard reach no other node: a function that
changes entries as the owner also inserts the record of it, and entries are queued by `auditlog_queue`.
"""

from django.db import migrations

# A shard has the table's name and a number. What a migration made before is replaced; the rest is as it was.
GUARD = """
CREATE OR REPLACE FUNCTION auditlog_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('auditlog.allowed', true) = TG_OP || ' ' || regexp_replace(TG_TABLE_NAME, '_[0-9]+$', '') THEN
        RETURN coalesce(NEW, OLD);
    END IF;
    RAISE EXCEPTION 'audit entries are append-only: % of % refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END
$$;
"""

QUEUE = """
CREATE FUNCTION auditlog_queue(entry_ids uuid[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_trigger
        WHERE tgrelid = 'public.auditlog_auditentry'::regclass AND tgname = 'auditlog_enqueue'
    ) THEN
        INSERT INTO public.auditlog_pendingentry (entry_id) SELECT unnest(entry_ids);
    END IF;
END
$$;

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
    PERFORM public.auditlog_queue(ARRAY[made.id]);
END
$$;
"""

NO_QUEUE = """
DROP FUNCTION auditlog_record(jsonb);
DROP FUNCTION auditlog_queue(uuid[]);
"""

# `SET LOCAL` reaches the sessions on other nodes, as `set_config` does not. The functions of three and two
# arguments serve processes of the version before; the release after this one drops them.
# On Citus another tenant's entry may have the same id, although nobody makes such: neither is erased (`STRICT`).
FUNCTIONS = """
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
            AND substring(t.hashes FROM (32 * (place % 256) + 1)::integer FOR 32) = sha256('\\x00'::bytea || leaf)
    ) THEN
        RAISE EXCEPTION 'not the leaf at %', place USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOREACH part IN ARRAY parts LOOP
        n := array_position(names, part);
        IF n IS NULL OR n = 1 OR gone ? part THEN
            RAISE EXCEPTION 'the part % cannot be erased', part USING ERRCODE = 'invalid_parameter_value';
        END IF;
        kept := overlay(kept PLACING '\\x00000000000000000000000000000000'::bytea FROM 16 * (n - 1) + 1 FOR 16);
        gone := gone || jsonb_build_object(part, encode(substring(leaf FROM 32 * (n - 1) + 2 FOR 32), 'hex'));
    END LOOP;
    PERFORM public.auditlog_record(told);
    SET LOCAL citus.propagate_set_commands = 'local';
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
    SET LOCAL citus.propagate_set_commands = 'local';
    SET LOCAL auditlog.allowed = 'DELETE auditlog_auditentry';
    DELETE FROM public.auditlog_auditentry WHERE id = ANY(gone);
    SET LOCAL auditlog.allowed = 'DELETE auditlog_leaf';
    DELETE FROM public.auditlog_leaf WHERE index >= low AND index < high;
    SET LOCAL auditlog.allowed = '';
    UPDATE public.auditlog_treehead SET minimum_index = high WHERE minimum_index < high;
    RETURN high - low;
END
$$;
"""

NO_FUNCTIONS = """
DROP FUNCTION auditlog_drop(timestamptz, bigint, jsonb);
DROP FUNCTION auditlog_erase(uuid, text[], bytea, jsonb);
"""


class Migration(migrations.Migration):
    dependencies = [("auditlog", "0010_index_of_words")]

    operations = [
        migrations.RunSQL(GUARD, migrations.RunSQL.noop),
        migrations.RunSQL(QUEUE, NO_QUEUE),
        migrations.RunSQL(FUNCTIONS, NO_FUNCTIONS),
    ]
