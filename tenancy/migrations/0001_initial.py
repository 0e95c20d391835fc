import compliance.api.gate
import compliance.core.identifiers
import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

MARK = r"""
CREATE TABLE tenancy_commitmark (id integer PRIMARY KEY);
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Tenant',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=255)),
                ('enforcement', models.CharField(choices=[('enforce', 'Enforce'), ('observe', 'Observe')], db_default='enforce', default='enforce', max_length=16)),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'ordering': ['name', 'id'],
                'constraints': [models.CheckConstraint(condition=models.Q(('enforcement__in', ['enforce', 'observe'])), name='tenancy_enforcement_known')],
            },
        ),
        migrations.CreateModel(
            name='ApiKey',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(blank=True, max_length=255)),
                ('digest', models.CharField(editable=False, max_length=64, unique=True)),
                ('hint', models.CharField(max_length=64)),
                ('scopes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=compliance.api.gate.scope_choices, max_length=64), size=None)),
                ('created_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField(null=True)),
                ('revoked_at', models.DateTimeField(null=True)),
                ('last_used_at', models.DateTimeField(null=True)),
                ('successor', models.OneToOneField(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='predecessor', to='tenancy.apikey')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='api_keys', to='tenancy.tenant')),
            ],
            options={
                'verbose_name': 'API key',
                'verbose_name_plural': 'API keys',
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('tenant_id', models.UUIDField()),
                ('role', models.CharField(choices=[('officer', 'Compliance officer'), ('auditor', 'Auditor'), ('developer', 'Developer')], max_length=16)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['user__username', 'id'],
                'constraints': [models.UniqueConstraint(fields=('user', 'tenant_id'), name='tenancy_one_role_in_a_tenant'), models.CheckConstraint(condition=models.Q(('role__in', ['officer', 'auditor', 'developer'])), name='tenancy_role_known')],
            },
        ),
        migrations.RunSQL(MARK),
    ]
