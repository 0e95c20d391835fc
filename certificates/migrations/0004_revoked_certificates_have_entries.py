"""Each revoked certificate keeps its line of the revocation lists."""

from typing import Any

from cryptography.x509 import ReasonFlags
from django.db import migrations

from certificates.lists.crl import encode_entry


def write_entries(apps: Any, schema_editor: Any) -> None:
    certificates = apps.get_model("certificates", "Certificate").objects.using(schema_editor.connection.alias)
    for certificate in certificates.filter(status="revoked", crl_entry=None).iterator():
        reason = ReasonFlags(certificate.revocation_code or "unspecified")
        entry = encode_entry(int(certificate.serial_number, 16), certificate.revoked_at, reason)
        certificates.filter(id=certificate.id).update(crl_entry=entry)


class Migration(migrations.Migration):
    dependencies = [("certificates", "0003_lists_move_into_parts")]

    operations = [migrations.RunPython(write_entries, migrations.RunPython.noop)]
