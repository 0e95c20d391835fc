"""Every delivery and attempt has a tenant: for new rows at once, then the others are looked at.

The release after the next can set the columns NOT NULL, which takes these constraints for proof, and drop
the constraints and the triggers of `0006`.
"""

from django.db import migrations

DEMANDED = [
    "ALTER TABLE webhooks_delivery ADD CONSTRAINT webhooks_delivery_has_tenant"
    " CHECK (tenant_id IS NOT NULL) NOT VALID",
    "ALTER TABLE webhooks_attempt ADD CONSTRAINT webhooks_attempt_has_tenant"
    " CHECK (tenant_id IS NOT NULL) NOT VALID",
]
VALID = [
    "SET statement_timeout = 0",
    "ALTER TABLE webhooks_delivery VALIDATE CONSTRAINT webhooks_delivery_has_tenant",
    "ALTER TABLE webhooks_attempt VALIDATE CONSTRAINT webhooks_attempt_has_tenant",
    "RESET statement_timeout",
]
NOT_DEMANDED = [
    "ALTER TABLE webhooks_attempt DROP CONSTRAINT IF EXISTS webhooks_attempt_has_tenant",
    "ALTER TABLE webhooks_delivery DROP CONSTRAINT IF EXISTS webhooks_delivery_has_tenant",
]


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("webhooks", "0007_fill_tenants")]

    operations = [
        # One that is there already is of a run that broke off.
        migrations.RunSQL(NOT_DEMANDED, migrations.RunSQL.noop),
        migrations.RunSQL(DEMANDED, NOT_DEMANDED),
        migrations.RunSQL(VALID, migrations.RunSQL.noop),
    ]
