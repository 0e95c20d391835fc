"""Index entries by their actor, while others go on writing; run it again if it was interrupted."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

NAME = "auditlog_actor_time"


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("auditlog", "0008_sealing")]

    operations = [
        # Building takes longer than a connection's limits allow, and waits for older transactions to end.
        migrations.RunSQL(["SET statement_timeout = 0", "SET lock_timeout = 0"], migrations.RunSQL.noop),
        # An interrupted run leaves an index that is not used.
        migrations.RunSQL(f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}", migrations.RunSQL.noop),
        AddIndexConcurrently(
            "auditentry", models.Index(fields=["actor_id", "-created_at", "-id"], name=NAME)
        ),
        migrations.RunSQL(["RESET statement_timeout", "RESET lock_timeout"], migrations.RunSQL.noop),
    ]
