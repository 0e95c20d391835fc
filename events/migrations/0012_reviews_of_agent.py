"""Index reviews by their agent, for its trail, while others go on writing; run it again if interrupted."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

NAME = "events_review_of_agent"


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("events", "0011_review_case_number")]

    operations = [
        # Building takes longer than a connection's limits allow, and waits for older transactions to end.
        migrations.RunSQL(["SET statement_timeout = 0", "SET lock_timeout = 0"], migrations.RunSQL.noop),
        # An interrupted run leaves an index that is not used.
        migrations.RunSQL(f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}", migrations.RunSQL.noop),
        AddIndexConcurrently(
            "eventreview", models.Index(fields=["agent", "-reviewed_at", "-id"], name=NAME)
        ),
        migrations.RunSQL(["RESET statement_timeout", "RESET lock_timeout"], migrations.RunSQL.noop),
    ]
