import compliance.core.identifiers
import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models

SEQUENCES = r"""
CREATE SEQUENCE delegation_status_index MINVALUE 0 START 0;
CREATE SEQUENCE delegation_status_list MINVALUE 0 START 0;
"""
FUNCTIONS = r"""
CREATE FUNCTION delegation_next_status_index() RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT nextval('public.delegation_status_index')
$$;

CREATE FUNCTION delegation_next_status_list() RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT nextval('public.delegation_status_list')
$$;
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('agents', '0001_initial'),
        ('tenancy', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='TokenKey',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('kid', models.CharField(max_length=64, unique=True)),
                ('uri', models.CharField(max_length=2000)),
                ('public_jwk', models.JSONField()),
                ('status', models.CharField(choices=[('published', 'Published'), ('active', 'Active'), ('retired', 'Retired'), ('withdrawn', 'Withdrawn')], max_length=16)),
                ('published_at', models.DateTimeField()),
                ('active_from', models.DateTimeField()),
                ('retired_at', models.DateTimeField(null=True)),
                ('destroyed_at', models.DateTimeField(null=True)),
            ],
            options={
                'ordering': ['-published_at', '-id'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('status', 'active')), fields=('status',), name='delegation_one_active_key'), models.UniqueConstraint(condition=models.Q(('status', 'published')), fields=('status',), name='delegation_one_next_key'), models.CheckConstraint(condition=models.Q(('status__in', ['published', 'active', 'retired', 'withdrawn'])), name='delegation_key_status_known'), models.CheckConstraint(condition=models.Q(models.Q(('retired_at', None), ('status__in', ['published', 'active'])), models.Q(('retired_at__isnull', False), ('status__in', ['retired', 'withdrawn'])), _connector='OR'), name='delegation_key_retired_at_with_status')],
            },
        ),
        migrations.CreateModel(
            name='IssuedToken',
            fields=[
                ('id', models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ('certificate_serial', models.CharField(max_length=40, null=True)),
                ('parent_token_id', models.UUIDField(null=True)),
                ('ancestor_ids', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), size=None)),
                ('lineage_agent_ids', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), size=None)),
                ('lineage_serials', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40, null=True), size=None)),
                ('chain', models.JSONField()),
                ('principal', models.CharField(max_length=256)),
                ('scope', models.CharField(blank=True, max_length=500)),
                ('audience', models.CharField(max_length=256, null=True)),
                ('root_issuer', models.CharField(max_length=255, null=True)),
                ('root_subject', models.CharField(max_length=255, null=True)),
                ('bound_to', models.CharField(max_length=43, null=True)),
                ('status_index', models.BigIntegerField(unique=True)),
                ('issued_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('revoked_at', models.DateTimeField(null=True)),
                ('revoked_by', models.CharField(max_length=255, null=True)),
                ('revocation_reason', models.CharField(max_length=500, null=True)),
                ('agent', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='issued_tokens', to='agents.agent')),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'ordering': ['-issued_at', '-id'],
                'indexes': [models.Index(fields=['tenant', '-issued_at', '-id'], name='delegation_issued_of_tenant'), models.Index(fields=['agent', '-issued_at', '-id'], name='delegation_issued_of_agent'), models.Index(fields=['expires_at'], name='delegation_issued_end'), django.contrib.postgres.indexes.GinIndex(condition=models.Q(('parent_token_id__isnull', False)), fields=['ancestor_ids'], name='delegation_issued_ancestors')],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('revocation_reason', None), ('revoked_at', None), ('revoked_by', None)), models.Q(('revocation_reason__isnull', False), ('revoked_at__isnull', False), ('revoked_by__isnull', False)), _connector='OR'), name='delegation_revoked_says_when_who_and_why'), models.CheckConstraint(condition=models.Q(models.Q(('root_issuer', None), ('root_subject', None)), models.Q(('root_issuer__isnull', False), ('root_subject__isnull', False)), _connector='OR'), name='delegation_root_issuer_with_subject'), models.CheckConstraint(condition=models.Q(('expires_at__gt', models.F('issued_at'))), name='delegation_end_after_start'), models.CheckConstraint(condition=models.Q(('status_index__gte', 0)), name='delegation_status_index_counts')],
            },
        ),
        migrations.RunSQL(SEQUENCES),
        migrations.RunSQL(FUNCTIONS),
    ]
