"""The certificates of agents that are suspended go on hold; agents reinstated with an active one are active.

Suspending did not touch the certificate before, and reinstating made the agent pending whatever it held.
"""

from datetime import UTC, datetime
from typing import Any

from cryptography.x509 import ReasonFlags
from django.db import migrations

from certificates.lists.crl import encode_entry

HOLD = ReasonFlags.certificate_hold


def put_on_hold(apps: Any, schema_editor: Any) -> None:
    alias = schema_editor.connection.alias
    certificates = apps.get_model("certificates", "Certificate").objects.using(alias)
    agents = apps.get_model("agents", "Agent").objects.using(alias)
    now = datetime.now(UTC)
    active = certificates.filter(status="active", expires_at__gte=now)
    for certificate in active.filter(agent__status="suspended").select_related("agent").iterator():
        held_at = certificate.agent.status_changed_at
        entry = encode_entry(int(certificate.serial_number, 16), held_at, HOLD)
        certificates.filter(id=certificate.id).update(
            status="revoked",
            revoked_at=held_at,
            revocation_reason=HOLD.value,
            revocation_code=HOLD.value,
            crl_entry=entry,
        )
    agents.filter(status="pending", id__in=active.values("agent_id")).update(
        status="active", status_changed_at=now, updated_at=now
    )


class Migration(migrations.Migration):
    dependencies = [("certificates", "0007_ended_holds"), ("agents", "0001_initial")]

    operations = [migrations.RunPython(put_on_hold, migrations.RunPython.noop)]
