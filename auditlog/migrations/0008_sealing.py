"""What the database itself enforces of the tree: every entry is queued, the tree only grows, erasure is recorded.

The service can change the tree only through these functions, which run as the owner of the tables (SECURITY
DEFINER) and check their arguments. `compliance/ops/privileges/listed.py` says who may call them.
"""

from datetime import UTC, datetime

from django.db import migrations, models

QUEUE = """
CREATE FUNCTION auditlog_enqueue() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    INSERT INTO public.auditlog_pendingentry (entry_id) VALUES (NEW.id);
    RETURN NULL;
END
$$;
CREATE TRIGGER auditlog_enqueue AFTER INSERT ON auditlog_auditentry
    FOR EACH ROW EXECUTE FUNCTION auditlog_enqueue();
INSERT INTO auditlog_pendingentry (entry_id) SELECT id FROM auditlog_auditentry ORDER BY created_at, id;
INSERT INTO auditlog_treehead (id, size, root, minimum_index) VALUES (1, 0, sha256(''), 0);
ALTER TABLE auditlog_tile ALTER COLUMN hashes SET STORAGE EXTERNAL;
"""

UNQUEUE = """
DROP TRIGGER auditlog_enqueue ON auditlog_auditentry;
DROP FUNCTION auditlog_enqueue();
"""

GUARD = """
CREATE OR REPLACE FUNCTION auditlog_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('auditlog.allowed', true) = TG_OP || ' ' || TG_TABLE_NAME THEN
        RETURN coalesce(NEW, OLD);
    END IF;
    RAISE EXCEPTION 'audit entries are append-only: % of % refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER auditlog_no_change BEFORE UPDATE OR DELETE ON auditlog_leaf
    FOR EACH ROW EXECUTE FUNCTION auditlog_refuse_change();
CREATE TRIGGER auditlog_no_truncate BEFORE TRUNCATE ON auditlog_leaf
    FOR EACH STATEMENT EXECUTE FUNCTION auditlog_refuse_change();

CREATE FUNCTION auditlog_only_grows() RETURNS trigger LANGUAGE plpgsql AS $$
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
            AND substr(NEW.note, length(OLD.note) + 1) ~ '^(— [^ +\\n]+ [A-Za-z0-9+/]+=*\\n)*$'
            AND cardinality(string_to_array(NEW.note, E'\\n')) <= 69;
    END IF;
    IF NOT grows THEN
        RAISE EXCEPTION 'the audit log only grows: % of % refused', TG_OP, TG_TABLE_NAME
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER auditlog_no_change BEFORE UPDATE OR DELETE ON auditlog_tile
    FOR EACH ROW EXECUTE FUNCTION auditlog_only_grows();
CREATE TRIGGER auditlog_no_truncate BEFORE TRUNCATE ON auditlog_tile
    FOR EACH STATEMENT EXECUTE FUNCTION auditlog_only_grows();
CREATE TRIGGER auditlog_no_change BEFORE UPDATE OR DELETE ON auditlog_treehead
    FOR EACH ROW EXECUTE FUNCTION auditlog_only_grows();
CREATE TRIGGER auditlog_no_truncate BEFORE TRUNCATE ON auditlog_treehead
    FOR EACH STATEMENT EXECUTE FUNCTION auditlog_only_grows();
CREATE TRIGGER auditlog_no_change BEFORE UPDATE OR DELETE ON auditlog_signedhead
    FOR EACH ROW EXECUTE FUNCTION auditlog_only_grows();
CREATE TRIGGER auditlog_no_truncate BEFORE TRUNCATE ON auditlog_signedhead
    FOR EACH STATEMENT EXECUTE FUNCTION auditlog_only_grows();

CREATE FUNCTION auditlog_states_tree() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF split_part(NEW.note, E'\\n', 2) <> NEW.size::text
        OR split_part(NEW.note, E'\\n', 3) <> encode(NEW.root, 'base64')
        OR substring(NEW.note FROM position(E'\\n\\n' IN NEW.note) + 2)
            !~ '^(— [^ +\\n]+ [A-Za-z0-9+/]+=*\\n)+$'
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
$$;
CREATE TRIGGER auditlog_states_tree BEFORE INSERT ON auditlog_signedhead
    FOR EACH ROW EXECUTE FUNCTION auditlog_states_tree();
"""

UNGUARD = """
DROP TRIGGER auditlog_no_change ON auditlog_leaf;
DROP TRIGGER auditlog_no_truncate ON auditlog_leaf;
DROP TRIGGER auditlog_no_change ON auditlog_tile;
DROP TRIGGER auditlog_no_truncate ON auditlog_tile;
DROP TRIGGER auditlog_no_change ON auditlog_treehead;
DROP TRIGGER auditlog_no_truncate ON auditlog_treehead;
DROP TRIGGER auditlog_no_change ON auditlog_signedhead;
DROP TRIGGER auditlog_no_truncate ON auditlog_signedhead;
DROP TRIGGER auditlog_states_tree ON auditlog_signedhead;
DROP FUNCTION auditlog_states_tree();
DROP FUNCTION auditlog_only_grows();
"""

# A sealer can still seal hashes that are not of its entries; verification names them. What erasure keeps are
# the commitments of the sealed leaf; it locks rows in the order in which `auditlog_drop` locks them.
FUNCTIONS = """
CREATE FUNCTION auditlog_seal(
    old_size bigint, pending_ids bigint[], entry_ids uuid[], salts bytea[],
    tile_levels smallint[], tile_indexes bigint[], tiles bytea[], new_root bytea
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

CREATE FUNCTION auditlog_erase(erased_id uuid, parts text[], leaf bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    names text[] := '{head,actor_id,affected_id,description,metadata}';
    tenant uuid; place bigint; kept bytea; gone jsonb; part text; n integer;
BEGIN
    SELECT e.tenant_id INTO tenant FROM public.auditlog_auditentry e WHERE e.id = erased_id FOR UPDATE;
    SELECT l.index, l.salts, coalesce(l.erased, '{}') INTO place, kept, gone
        FROM public.auditlog_leaf l WHERE l.entry_id = erased_id FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no sealed entry %', erased_id USING ERRCODE = 'no_data_found';
    END IF;
    IF NOT EXISTS (
        SELECT FROM public.auditlog_auditentry e
        WHERE e.event_type = 'audit.erased' AND e.affected_id = erased_id::text AND e.tenant_id = tenant
            AND e.metadata -> 'parts' ?& parts
            AND e.created_at BETWEEN now() - interval '10 minutes' AND now() + interval '10 minutes'
    ) THEN
        RAISE EXCEPTION 'an erasure is recorded first' USING ERRCODE = 'insufficient_privilege';
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
    PERFORM set_config('auditlog.allowed', 'UPDATE auditlog_leaf', true);
    UPDATE public.auditlog_leaf SET salts = kept, erased = gone WHERE entry_id = erased_id;
    PERFORM set_config('auditlog.allowed', 'UPDATE auditlog_auditentry', true);
    UPDATE public.auditlog_auditentry SET
        actor_id = CASE WHEN 'actor_id' = ANY(parts) THEN 'erased' ELSE actor_id END,
        affected_id = CASE WHEN 'affected_id' = ANY(parts) THEN NULL ELSE affected_id END,
        description = CASE WHEN 'description' = ANY(parts) THEN NULL ELSE description END,
        metadata = CASE WHEN 'metadata' = ANY(parts) THEN NULL ELSE metadata END
        WHERE id = erased_id;
    PERFORM set_config('auditlog.allowed', '', true);
END
$$;

CREATE FUNCTION auditlog_drop(horizon timestamptz, most bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    low bigint; sealed bigint; high bigint;
BEGIN
    IF horizon IS NULL OR most IS NULL OR horizon > now() - interval '183 days' THEN
        RAISE EXCEPTION 'audit entries of the last 183 days are kept' USING ERRCODE = 'insufficient_privilege';
    END IF;
    SELECT minimum_index, size INTO low, sealed FROM public.auditlog_treehead FOR UPDATE;
    high := least(sealed, low + most);
    SELECT least(high, min(found.index)) INTO high FROM (
        SELECT l.index FROM public.auditlog_leaf l JOIN public.auditlog_auditentry e ON e.id = l.entry_id
        WHERE l.index >= low AND l.index < high AND e.created_at >= horizon ORDER BY l.index LIMIT 1
    ) found;
    PERFORM set_config('auditlog.allowed', 'DELETE auditlog_auditentry', true);
    DELETE FROM public.auditlog_auditentry e USING public.auditlog_leaf l
        WHERE e.id = l.entry_id AND l.index >= low AND l.index < high;
    PERFORM set_config('auditlog.allowed', 'DELETE auditlog_leaf', true);
    DELETE FROM public.auditlog_leaf WHERE index >= low AND index < high;
    PERFORM set_config('auditlog.allowed', '', true);
    UPDATE public.auditlog_treehead SET minimum_index = high WHERE minimum_index < high;
    RETURN high - low;
END
$$;
"""

NO_FUNCTIONS = """
DROP FUNCTION auditlog_drop(timestamptz, bigint);
DROP FUNCTION auditlog_erase(uuid, text[], bytea);
DROP FUNCTION auditlog_seal(bigint, bigint[], uuid[], bytea[], smallint[], bigint[], bytea[], bytea);
"""


class Migration(migrations.Migration):
    dependencies = [("auditlog", "0007_tree")]

    operations = [
        migrations.RunSQL(QUEUE, UNQUEUE),
        migrations.RunSQL(GUARD, UNGUARD),
        migrations.RunSQL(FUNCTIONS, NO_FUNCTIONS),
        migrations.AddConstraint(
            "auditentry",
            models.CheckConstraint(
                condition=models.Q(
                    created_at__gte=datetime(1970, 1, 1, tzinfo=UTC),
                    created_at__lt=datetime(9999, 1, 1, tzinfo=UTC),
                ),
                name="auditlog_created_at_sane",
            ),
        ),
    ]
