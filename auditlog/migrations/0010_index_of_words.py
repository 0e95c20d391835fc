"""Index the words of entries beside their tenant, while others go on writing; run it again if interrupted."""

from django.db import migrations

NAME = "auditlog_words"
# `auditlog.finding.words.EntryWords` must be the same expression. The list of what is not merged into the index yet
# stays short: who merges it is an insert that waits.
CREATE = f"""
CREATE INDEX CONCURRENTLY {NAME} ON auditlog_auditentry USING gin ((
    array_to_tsvector(ARRAY[tenant_id::text]) || to_tsvector('simple', translate(
        coalesce(description, '')
            || ' ' || coalesce(metadata ->> 'reason', '')
            || ' ' || coalesce(metadata ->> 'note', '')
            || ' ' || coalesce(metadata ->> 'comment', ''),
        '-_./:@', '      '))
)) WITH (gin_pending_list_limit = 256)
"""


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("auditlog", "0009_index_by_actor")]

    operations = [
        migrations.RunSQL(["SET statement_timeout = 0", "SET lock_timeout = 0"], migrations.RunSQL.noop),
        migrations.RunSQL(
            [f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}", CREATE], f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}"
        ),
        migrations.RunSQL(["RESET statement_timeout", "RESET lock_timeout"], migrations.RunSQL.noop),
    ]
