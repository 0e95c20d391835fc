"""An index of a partitioned table: of no rows on the table itself, then of each partition, then attached."""

from django.db import migrations, models

TABLE, NAME = "events_behaviorevent", "events_by_weight"
UNATTACHED = """
SELECT inhrelid::regclass::text FROM pg_inherits AS partition
WHERE inhparent = %s::regclass AND NOT EXISTS (
    SELECT FROM pg_inherits AS attached JOIN pg_index ON indexrelid = attached.inhrelid
    WHERE attached.inhparent = %s::regclass AND indrelid = partition.inhrelid
) ORDER BY 1
"""


def of_partitions(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        (limit,) = cursor.fetchone()
        cursor.execute(UNATTACHED, [TABLE, NAME])
        for (partition,) in cursor.fetchall():
            name = f"{partition}_weight"
            # Building takes longer than a connection's limits allow, and waits for older transactions to end.
            cursor.execute("SET statement_timeout = 0")
            cursor.execute("SET lock_timeout = 0")
            # An interrupted run leaves an index that is not used.
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            cursor.execute(f"CREATE INDEX CONCURRENTLY {name} ON {partition} (weight, id)")
            # Requests wait behind a lock on the partition's index.
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", [limit])
            cursor.execute(f"ALTER INDEX {NAME} ATTACH PARTITION {name}")
        cursor.execute("RESET statement_timeout")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("events", "e002_valid")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(f"CREATE INDEX IF NOT EXISTS {NAME} ON ONLY {TABLE} (weight, id)"),
                migrations.RunPython(of_partitions),
            ],
            [migrations.AddIndex("behaviorevent", models.Index(fields=["weight", "id"], name=NAME))],
        )
    ]
