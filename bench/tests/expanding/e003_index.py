"""An index of a partitioned table: of no rows on the table itself, then of each partition, then attached."""

from django.db import migrations, models

TABLE, NAME = "events_behaviorevent", "events_by_weight"
PARTITIONS = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass ORDER BY 1"


def of_partitions(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(PARTITIONS, [TABLE])
        for (partition,) in cursor.fetchall():
            name = f"{partition}_weight"
            # An interrupted run leaves an index that is not used.
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            cursor.execute(f"CREATE INDEX CONCURRENTLY {name} ON {partition} (weight, id)")
            cursor.execute(f"ALTER INDEX {NAME} ATTACH PARTITION {name}")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("events", "e002_valid")]

    operations = [
        # Building takes longer than a connection's limits allow, and waits for older transactions to end.
        migrations.RunSQL(["SET statement_timeout = 0", "SET lock_timeout = 0"]),
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(f"CREATE INDEX IF NOT EXISTS {NAME} ON ONLY {TABLE} (weight, id)"),
                migrations.RunPython(of_partitions),
            ],
            [migrations.AddIndex("behaviorevent", models.Index(fields=["weight", "id"], name=NAME))],
        ),
        migrations.RunSQL(["RESET statement_timeout", "RESET lock_timeout"]),
    ]
