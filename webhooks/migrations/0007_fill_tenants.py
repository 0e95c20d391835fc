"""Give deliveries and attempts from before `0006` their tenant, a few thousand rows at a time.

Rows that senders hold are left to a later pass, so that nobody waits for this in a circle.
"""

from django.db import migrations

ROWS = 5_000
# By the primary key, which comes before the first: no UUID in use is all zeroes.
FIRST = "00000000-0000-0000-0000-000000000000"
PASSES = 1_000

DELIVERIES = """
WITH part AS (
    SELECT id, webhook_id FROM webhooks_delivery WHERE id > %s AND tenant_id IS NULL
    ORDER BY id LIMIT %s FOR NO KEY UPDATE SKIP LOCKED
), filled AS (
    UPDATE webhooks_delivery delivery SET tenant_id = webhook.tenant_id
    FROM part JOIN webhooks_webhook webhook ON webhook.id = part.webhook_id
    WHERE delivery.id = part.id
)
SELECT id FROM part ORDER BY id DESC LIMIT 1
"""
ATTEMPTS = """
WITH part AS (
    SELECT id, delivery_id FROM webhooks_attempt WHERE id > %s AND tenant_id IS NULL
    ORDER BY id LIMIT %s FOR NO KEY UPDATE SKIP LOCKED
), filled AS (
    UPDATE webhooks_attempt attempt SET tenant_id = delivery.tenant_id
    FROM part JOIN webhooks_delivery delivery ON delivery.id = part.delivery_id
    WHERE attempt.id = part.id
)
SELECT id FROM part ORDER BY id DESC LIMIT 1
"""
LEFT = {
    DELIVERIES: "SELECT EXISTS (SELECT FROM webhooks_delivery WHERE tenant_id IS NULL)",
    ATTEMPTS: "SELECT EXISTS (SELECT FROM webhooks_attempt WHERE tenant_id IS NULL)",
}


def fill(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        for statement, left in LEFT.items():
            for _ in range(PASSES):
                one_pass(cursor, statement)
                cursor.execute(left)
                if not cursor.fetchone()[0]:
                    break


def one_pass(cursor, statement):
    """Fill all rows that nobody holds; each statement commits by itself."""
    last = FIRST
    while last:
        cursor.execute(statement, [last, ROWS])
        row = cursor.fetchone()
        last = row and row[0]


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("webhooks", "0006_tenants")]

    operations = [
        # A pass by a large table's key, and the look for rows that are left, take longer than the limit.
        migrations.RunSQL(["SET statement_timeout = 0"], migrations.RunSQL.noop),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.RunSQL(["RESET statement_timeout"], migrations.RunSQL.noop),
    ]
