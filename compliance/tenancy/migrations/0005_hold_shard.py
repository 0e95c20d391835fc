"""On Citus, the function by which the service writes to a shard's own table without losing rows to a move.

Citus blocks writes to a shard with a lock of its own, which only the table's owner may take; on plain PostgreSQL
the function is never called. `compliance/stores/postgresql/tenant_nodes.py` calls it.
"""

from django.db import migrations

# 5 is ShareLock, which Citus takes for its own writes. The placement is looked at once the lock is held.
HOLD = """
CREATE FUNCTION tenancy_hold_shard(shard bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM lock_shard_metadata(5, ARRAY[shard]);
    IF NOT EXISTS (
        SELECT FROM pg_dist_placement JOIN pg_dist_local_group USING (groupid) WHERE shardid = shard
    ) THEN
        RAISE EXCEPTION 'shard % is not on this node', shard;
    END IF;
    RETURN true;
END
$$;
-- Workers know nothing of the default privileges.
REVOKE ALL ON FUNCTION tenancy_hold_shard(bigint) FROM PUBLIC;
"""
RELEASE = "DROP FUNCTION tenancy_hold_shard(bigint);"


class Migration(migrations.Migration):
    dependencies = [("tenancy", "0004_scopes_by_name")]

    operations = [migrations.RunSQL(HOLD, RELEASE)]
