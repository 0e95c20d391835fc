"""What the service needs on Citus, and never uses on plain PostgreSQL.

A function by which it writes to a shard's own table without losing rows to a move: Citus blocks writes to a shard
with a lock that only the table's owner may take. `compliance/stores/postgresql/tenant_nodes.py` calls it.

A table that stays empty, by which commits of several nodes have two phases; `compliance/stores/postgresql/base.py`
names it.
"""

from django.db import migrations

# 5 is ShareLock, Citus's own for writes; a move takes 7. The function is VOLATILE: its second statement sees what
# was committed while the first waited. Citus moves the shards of tables that lie together at once: the lock on one
# stands for all.
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
"""
RELEASE = "DROP FUNCTION tenancy_hold_shard(bigint);"
MARK = "CREATE TABLE tenancy_commitmark (id integer PRIMARY KEY);"
UNMARK = "DROP TABLE tenancy_commitmark;"


class Migration(migrations.Migration):
    dependencies = [("tenancy", "0004_scopes_by_name")]

    operations = [migrations.RunSQL(HOLD, RELEASE), migrations.RunSQL(MARK, UNMARK)]
