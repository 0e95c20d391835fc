import compliance.core.identifiers
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

FUNCTIONS = r"""
CREATE FUNCTION people_identify() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    INSERT INTO public.people_person (id, user_id, created_at) VALUES (gen_random_uuid(), NEW.id, now());
    RETURN NULL;
END
$$;

CREATE FUNCTION people_refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'people are deactivated, never deleted: % of % refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END
$$;
"""
TRIGGERS = r"""
CREATE TRIGGER people_identify AFTER INSERT ON auth_user
    FOR EACH ROW EXECUTE FUNCTION people_identify();
CREATE TRIGGER people_no_change BEFORE DELETE OR UPDATE OF id ON auth_user
    FOR EACH ROW EXECUTE FUNCTION people_refuse_change();
CREATE TRIGGER people_no_change BEFORE UPDATE OR DELETE ON people_person
    FOR EACH ROW EXECUTE FUNCTION people_refuse_change();
CREATE TRIGGER people_no_truncate BEFORE TRUNCATE ON auth_user
    FOR EACH STATEMENT EXECUTE FUNCTION people_refuse_change();
CREATE TRIGGER people_no_truncate BEFORE TRUNCATE ON people_person
    FOR EACH STATEMENT EXECUTE FUNCTION people_refuse_change();
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='CacheEntry',
            fields=[
                ('cache_key', models.CharField(max_length=255, primary_key=True, serialize=False)),
                ('value', models.TextField()),
                ('expires', models.DateTimeField(db_index=True)),
            ],
            options={
                'db_table': 'people_cache',
            },
        ),
        migrations.CreateModel(
            name='Person',
            fields=[
                ('id', models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField()),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='person', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name_plural': 'people',
            },
        ),
        migrations.CreateModel(
            name='OneTimeLink',
            fields=[
                ('person', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='link', serialize=False, to='people.person')),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('expires_at', models.DateTimeField()),
                ('signs_in', models.BooleanField(db_default=False, default=False)),
            ],
        ),
        migrations.CreateModel(
            name='ExternalIdentity',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('issuer', models.CharField(max_length=255)),
                ('subject', models.CharField(max_length=255)),
                ('linked_at', models.DateTimeField()),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='external_identities', to='people.person')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('issuer', 'subject'), name='people_identity_of_one'), models.UniqueConstraint(fields=('person', 'issuer'), name='people_one_identity')],
            },
        ),
        migrations.RunSQL(FUNCTIONS),
        migrations.RunSQL(TRIGGERS),
    ]
