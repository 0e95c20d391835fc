"""Give each incident that is on record its agent and the certificates of its timeline."""

from django.db import migrations

FILL = """
INSERT INTO incidents_touchedagent (id, incident_id, agent_id, agent_name, since, why, case_number, is_current)
SELECT id, id, agent_id, agent_name, detected_at, title, '', state <> 'closed' FROM incidents_incident
ON CONFLICT DO NOTHING;
INSERT INTO incidents_touchedcertificate (id, incident_id, agent_id, certificate_id, serial_number, since, why)
SELECT DISTINCT ON (entry.incident_id, entry.certificate_id)
    entry.id, entry.incident_id, incident.agent_id, entry.certificate_id, entry.serial_number, entry.at, entry.text
FROM incidents_timelineentry AS entry JOIN incidents_incident AS incident ON incident.id = entry.incident_id
WHERE entry.certificate_id IS NOT NULL
ORDER BY entry.incident_id, entry.certificate_id, entry.at, entry.id
ON CONFLICT DO NOTHING;
"""


class Migration(migrations.Migration):
    dependencies = [("incidents", "0003_touched_agents")]

    operations = [migrations.RunSQL(FILL, migrations.RunSQL.noop)]
