"""A partition of events is dropped only if the audit log names an archive of as many rows; one can be restored.

`events_partition_begin` makes a table apart, which the calling role may fill; `events_partition_attach` makes
it a partition, and takes the privilege back. They run as the owner of the tables, as those of migration 0007.
"""

from importlib import import_module

from django.db import migrations

BEFORE = import_module("events.migrations.0007_partition_functions")

REPLACE = """
DROP FUNCTION events_default_forget(timestamptz);
DROP FUNCTION events_partition_drop(text);

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

CREATE OR REPLACE FUNCTION events_partition_make(starts timestamptz, ends timestamptz) RETURNS bigint
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

CREATE FUNCTION events_partition_drop(partition_name text, archive_sha256 text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
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
    lower_id := substring(bound FROM $bound$FROM \\('([0-9a-f-]{36})'\\)$bound$)::uuid;
    upper_id := substring(bound FROM $bound$TO \\('([0-9a-f-]{36})'\\)$bound$)::uuid;
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
$$;

REVOKE ALL ON FUNCTION events_partition_name(timestamptz, timestamptz),
    events_partition_begin(timestamptz, timestamptz), events_partition_attach(timestamptz, timestamptz),
    events_partition_drop(text, text) FROM PUBLIC;
"""

REMOVE = """
DROP FUNCTION events_partition_drop(text, text);
DROP FUNCTION events_partition_make(timestamptz, timestamptz);
DROP FUNCTION events_partition_attach(timestamptz, timestamptz);
DROP FUNCTION events_partition_begin(timestamptz, timestamptz);
DROP FUNCTION events_partition_name(timestamptz, timestamptz);
DROP FUNCTION events_first_id(timestamptz);
"""


class Migration(migrations.Migration):
    dependencies = [("events", "0009_simulations"), ("auditlog", "0005_actions_by_name")]

    operations = [migrations.RunSQL(REPLACE, REMOVE + BEFORE.MAKE)]
