"""Functions that let a role that owns no table make partitions of the events table and drop outlived ones.

They run as the owner of the tables (SECURITY DEFINER), so each checks its arguments itself: what it makes or
drops is a partition of the events table, and nothing of the last 30 days can be dropped.
`compliance/ops/privileges/listed.py` says who may call them.
"""

from django.db import migrations

MAKE = """
CREATE FUNCTION events_first_id(moment timestamptz) RETURNS uuid
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT (lpad(to_hex(floor(extract(epoch FROM moment) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

CREATE FUNCTION events_partition_make(starts timestamptz, ends timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    low uuid; high uuid; name text; moved bigint;
BEGIN
    IF starts IS NULL OR ends IS NULL OR starts < '2000-01-01T00:00:00Z' OR ends > now() + interval '5 years'
            OR starts >= ends OR ends - starts > interval '32 days'
            OR starts <> date_trunc('second', starts) OR ends <> date_trunc('second', ends) THEN
        RAISE EXCEPTION 'no partition of events reaches from % to %', starts, ends
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    low := public.events_first_id(starts);
    high := public.events_first_id(ends);
    name := 'events_behaviorevent_' || to_char(starts AT TIME ZONE 'UTC', CASE
        WHEN starts AT TIME ZONE 'UTC' = date_trunc('day', starts AT TIME ZONE 'UTC') THEN 'YYYYMMDD'
        ELSE 'YYYYMMDD_HH24MISS' END);
    EXECUTE format('CREATE TABLE public.%I (LIKE public.events_behaviorevent INCLUDING DEFAULTS'
        ' INCLUDING CONSTRAINTS INCLUDING STORAGE INCLUDING INDEXES,'
        ' CONSTRAINT within CHECK (id >= %L AND id < %L))', name, low, high);
    EXECUTE format('WITH moved AS (DELETE FROM public.events_behaviorevent_default'
        ' WHERE id >= %L AND id < %L RETURNING *) INSERT INTO public.%I SELECT * FROM moved', low, high, name);
    GET DIAGNOSTICS moved = ROW_COUNT;
    EXECUTE format('ALTER TABLE public.events_behaviorevent ATTACH PARTITION public.%I'
        ' FOR VALUES FROM (%L) TO (%L)', name, low, high);
    EXECUTE format('ALTER TABLE public.%I DROP CONSTRAINT within', name);
    RETURN moved;
END
$$;

CREATE FUNCTION events_partition_drop(partition_name text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    bound text; upper_id uuid; row_estimate bigint;
BEGIN
    SELECT pg_get_expr(child.relpartbound, child.oid), greatest(child.reltuples, 0)::bigint
        INTO bound, row_estimate
        FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
        WHERE inhparent = 'public.events_behaviorevent'::regclass AND child.relname = partition_name
        AND child.relnamespace = 'public'::regnamespace;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    upper_id := substring(bound FROM $bound$TO \\('([0-9a-f-]{36})'\\)$bound$)::uuid;
    IF upper_id IS NULL OR upper_id > public.events_first_id(now() - interval '30 days') THEN
        RAISE EXCEPTION 'partition % may hold events of the last 30 days', partition_name
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    EXECUTE format('DROP TABLE public.%I', partition_name);
    RETURN row_estimate;
END
$$;

CREATE FUNCTION events_default_forget(horizon timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    deleted bigint;
BEGIN
    IF horizon IS NULL OR horizon > now() - interval '30 days' THEN
        RAISE EXCEPTION 'events of the last 30 days are kept' USING ERRCODE = 'insufficient_privilege';
    END IF;
    DELETE FROM public.events_behaviorevent_default WHERE id < public.events_first_id(horizon);
    GET DIAGNOSTICS deleted = ROW_COUNT;
    RETURN deleted;
END
$$;

REVOKE ALL ON FUNCTION events_first_id(timestamptz), events_partition_make(timestamptz, timestamptz),
    events_partition_drop(text), events_default_forget(timestamptz) FROM PUBLIC;
"""

UNMAKE = """
DROP FUNCTION events_default_forget(timestamptz);
DROP FUNCTION events_partition_drop(text);
DROP FUNCTION events_partition_make(timestamptz, timestamptz);
DROP FUNCTION events_first_id(timestamptz);
"""


class Migration(migrations.Migration):
    dependencies = [("events", "0006_snapshots")]

    operations = [migrations.RunSQL(MAKE, UNMAKE)]
