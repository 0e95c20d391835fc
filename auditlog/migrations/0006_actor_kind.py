"""Tell people at the console and API keys apart; older entries say it in the prefix of their actor's id."""

from django.db import migrations, models

FILL = """
ALTER TABLE auditlog_auditentry DISABLE TRIGGER auditlog_no_change;
UPDATE auditlog_auditentry SET actor_kind = CASE
    WHEN actor_type <> 'user' THEN actor_type WHEN actor_id LIKE 'api_key:%' THEN 'api_key' ELSE 'person' END;
ALTER TABLE auditlog_auditentry ENABLE TRIGGER auditlog_no_change;
"""
KINDS = [("person", "Person"), ("api_key", "Api Key"), ("agent", "Agent"), ("system", "System")]


class Migration(migrations.Migration):
    dependencies = [("auditlog", "0005_actions_by_name")]

    operations = [
        migrations.AddField(
            "auditentry", "actor_kind", models.CharField(max_length=16, choices=KINDS, null=True)
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.AlterField("auditentry", "actor_kind", models.CharField(max_length=16, choices=KINDS)),
        migrations.AddConstraint(
            "auditentry",
            models.CheckConstraint(
                condition=models.Q(actor_kind__in=[kind for kind, _ in KINDS]),
                name="auditlog_actor_kind_known",
            ),
        ),
    ]
