"""The events table is partitioned by range of id, in months; what it held moves along, in one transaction."""

from datetime import UTC, datetime

import django.db.models.deletion
from django.db import migrations, models

from compliance.core.identifiers import first_id_at, moment_of

TABLE = "events_behaviorevent"
OLD = "events_behaviorevent_old"
AHEAD = 3
OLD_INDEXES = [
    "events_tenant_time",
    "events_agent_time",
    "events_tenant_type",
    "events_tenant_risky",
    "events_agent_received",
    "events_high_received",
]


def months(first, last):
    """The first days of the months from that of `first` to that of `last`, and of the one after."""
    at, end = first.year * 12 + first.month - 1, last.year * 12 + last.month - 1
    return [datetime(n // 12, n % 12 + 1, 1, tzinfo=UTC) for n in range(at, end + 2)]


def partition(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute(f"LOCK TABLE {TABLE} IN ACCESS EXCLUSIVE MODE")
        cursor.execute(f"ALTER TABLE {TABLE} RENAME TO {OLD}")
        cursor.execute(f"ALTER INDEX {TABLE}_pkey RENAME TO {OLD}_pkey")
        for name in OLD_INDEXES:
            cursor.execute(f"DROP INDEX {name}")
        cursor.execute(
            f"CREATE TABLE {TABLE} (LIKE {OLD} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE,"
            f" CONSTRAINT {TABLE}_pkey PRIMARY KEY (id)) PARTITION BY RANGE (id)"
        )
        cursor.execute(f"CREATE TABLE {TABLE}_default PARTITION OF {TABLE} DEFAULT")
        make_partitions(cursor)
        cursor.execute(f"INSERT INTO {TABLE} SELECT * FROM {OLD} ORDER BY id")
        cursor.execute(f"DROP TABLE {OLD}")


def make_partitions(cursor):
    """From the month of the oldest event to some ahead; ids that are no times of ours stay in the default."""
    now = datetime.now(UTC)
    earliest = datetime(now.year - 5, 1, 1, tzinfo=UTC)
    cursor.execute(f"SELECT id FROM {OLD} WHERE id >= %s ORDER BY id LIMIT 1", [first_id_at(earliest)])
    oldest = cursor.fetchone()
    first = now if oldest is None else min(now, moment_of(oldest[0]))
    last = datetime(now.year + (now.month - 1 + AHEAD) // 12, (now.month - 1 + AHEAD) % 12 + 1, 1, tzinfo=UTC)
    bounds = months(first, last)
    for start, end in zip(bounds, bounds[1:], strict=False):
        cursor.execute(
            f"CREATE TABLE {TABLE}_{start:%Y%m%d} PARTITION OF {TABLE}"
            f" FOR VALUES FROM ('{first_id_at(start)}') TO ('{first_id_at(end)}')"
        )


class Migration(migrations.Migration):
    dependencies = [("events", "0001_initial")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(partition)],
            state_operations=[
                migrations.AlterField(
                    model_name="behaviorevent",
                    name="agent",
                    field=models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="events",
                        to="agents.agent",
                    ),
                ),
                migrations.AlterField(
                    model_name="behaviorevent",
                    name="tenant",
                    field=models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                *[migrations.RemoveIndex(model_name="behaviorevent", name=name) for name in OLD_INDEXES],
            ],
        ),
        migrations.AddIndex(
            model_name="behaviorevent",
            index=models.Index(
                fields=["tenant", "-occurred_at", "-id", "risk_band"], name="events_tenant_list"
            ),
        ),
        migrations.AddIndex(
            model_name="behaviorevent",
            index=models.Index(
                fields=["agent", "-occurred_at", "-id", "action_type", "risk_band"], name="events_agent_list"
            ),
        ),
        migrations.AddIndex(
            model_name="behaviorevent",
            index=models.Index(
                fields=["tenant", "action_type", "-occurred_at", "-id", "risk_band"], name="events_type_list"
            ),
        ),
        migrations.AddIndex(
            model_name="behaviorevent",
            index=models.Index(
                fields=["tenant", "risk_band", "-occurred_at", "-id", "action_type"],
                condition=models.Q(("risk_band", "low"), _negated=True),
                name="events_tenant_band_list",
            ),
        ),
        migrations.AddIndex(
            model_name="behaviorevent",
            index=models.Index(
                fields=["agent", "risk_band", "-occurred_at", "-id", "action_type"],
                condition=models.Q(("risk_band", "low"), _negated=True),
                name="events_agent_band_list",
            ),
        ),
        migrations.AddIndex(
            model_name="behaviorevent",
            index=models.Index(fields=["agent", "-id"], name="events_agent_receipt"),
        ),
        migrations.AddIndex(
            model_name="behaviorevent",
            index=models.Index(
                fields=["received_at", "agent"],
                condition=models.Q(("risk_band", "high")),
                name="events_high_receipt",
            ),
        ),
    ]
