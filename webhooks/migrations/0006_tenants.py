"""Deliveries and attempts get a column for their tenant; rows that the version before inserts are given it.

The column counts as NOT NULL: `0007` fills it, and `0008` demands it by a constraint.
"""

import django.db.models.deletion
from django.db import migrations, models

COLUMNS = """
ALTER TABLE webhooks_delivery ADD COLUMN tenant_id uuid;
ALTER TABLE webhooks_attempt ADD COLUMN tenant_id uuid;

CREATE FUNCTION webhooks_tenant_of_delivery() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    NEW.tenant_id := (SELECT tenant_id FROM public.webhooks_webhook WHERE id = NEW.webhook_id);
    RETURN NEW;
END
$$;
CREATE TRIGGER webhooks_give_tenant BEFORE INSERT ON webhooks_delivery
    FOR EACH ROW WHEN (NEW.tenant_id IS NULL) EXECUTE FUNCTION webhooks_tenant_of_delivery();

CREATE FUNCTION webhooks_tenant_of_attempt() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    NEW.tenant_id := (SELECT w.tenant_id FROM public.webhooks_delivery d
        JOIN public.webhooks_webhook w ON w.id = d.webhook_id WHERE d.id = NEW.delivery_id);
    RETURN NEW;
END
$$;
CREATE TRIGGER webhooks_give_tenant BEFORE INSERT ON webhooks_attempt
    FOR EACH ROW WHEN (NEW.tenant_id IS NULL) EXECUTE FUNCTION webhooks_tenant_of_attempt();
"""

NO_COLUMNS = """
DROP TRIGGER webhooks_give_tenant ON webhooks_attempt;
DROP TRIGGER webhooks_give_tenant ON webhooks_delivery;
ALTER TABLE webhooks_attempt DROP COLUMN tenant_id;
ALTER TABLE webhooks_delivery DROP COLUMN tenant_id;
DROP FUNCTION webhooks_tenant_of_attempt();
DROP FUNCTION webhooks_tenant_of_delivery();
"""


def tenant() -> models.ForeignKey:
    return models.ForeignKey(
        db_constraint=False,
        db_index=False,
        on_delete=django.db.models.deletion.PROTECT,
        related_name="+",
        to="tenancy.tenant",
    )


class Migration(migrations.Migration):
    dependencies = [("tenancy", "0001_initial"), ("webhooks", "0005_request_ids")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(COLUMNS, NO_COLUMNS)],
            [
                migrations.AddField("delivery", "tenant", tenant(), preserve_default=False),
                migrations.AddField("attempt", "tenant", tenant(), preserve_default=False),
            ],
        )
    ]
