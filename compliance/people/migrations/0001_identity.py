"""An identity for every user, made by the database with the user; neither is ever deleted."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# The triggers come before the rows: creating one waits for users being added and keeps others from it.
IDENTIFY = """
CREATE FUNCTION people_identify() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    INSERT INTO public.people_person (id, user_id, created_at) VALUES (gen_random_uuid(), NEW.id, now());
    RETURN NULL;
END
$$;
CREATE FUNCTION people_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'people are deactivated, never deleted: % of % refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER people_identify AFTER INSERT ON auth_user
    FOR EACH ROW EXECUTE FUNCTION people_identify();
CREATE TRIGGER people_no_change BEFORE DELETE OR UPDATE OF id ON auth_user
    FOR EACH ROW EXECUTE FUNCTION people_refuse_change();
CREATE TRIGGER people_no_truncate BEFORE TRUNCATE ON auth_user
    FOR EACH STATEMENT EXECUTE FUNCTION people_refuse_change();
CREATE TRIGGER people_no_change BEFORE UPDATE OR DELETE ON people_person
    FOR EACH ROW EXECUTE FUNCTION people_refuse_change();
CREATE TRIGGER people_no_truncate BEFORE TRUNCATE ON people_person
    FOR EACH STATEMENT EXECUTE FUNCTION people_refuse_change();
INSERT INTO people_person (id, user_id, created_at) SELECT gen_random_uuid(), id, date_joined FROM auth_user;
"""

FORGET = """
DROP TRIGGER people_no_truncate ON people_person;
DROP TRIGGER people_no_change ON people_person;
DROP TRIGGER people_no_truncate ON auth_user;
DROP TRIGGER people_no_change ON auth_user;
DROP TRIGGER people_identify ON auth_user;
DROP FUNCTION people_refuse_change();
DROP FUNCTION people_identify();
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Person",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField()),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="person",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={"verbose_name_plural": "people"},
        ),
        migrations.RunSQL(IDENTIFY, FORGET),
    ]
