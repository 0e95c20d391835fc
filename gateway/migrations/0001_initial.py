import compliance.core.identifiers
import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('tenancy', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='GatewayViolation',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('recorded_at', models.DateTimeField()),
            ],
            options={
                'ordering': ['-recorded_at', '-id'],
                'indexes': [models.Index(fields=['recorded_at'], name='gateway_violation_age')],
            },
        ),
        migrations.CreateModel(
            name='GatewayRoute',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=63)),
                ('credentials', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('serial', 'serial number'), ('bearer', 'bearer token'), ('dpop', 'bound token')], max_length=8), size=None)),
                ('action', models.CharField(max_length=256, null=True)),
                ('audience', models.CharField(max_length=256, null=True)),
                ('highest_band', models.CharField(choices=[('low', 'low'), ('medium', 'medium'), ('high', 'high')], default='high', max_length=8)),
                ('root', models.CharField(choices=[('any', 'Any'), ('verified', 'Verified')], default='any', max_length=16)),
                ('agents', models.CharField(choices=[('own', 'Own'), ('any', 'Any')], default='own', max_length=8)),
                ('nonce_required', models.BooleanField(default=False)),
                ('uncertified_agents', models.BooleanField(db_default=False, default=False)),
                ('created_at', models.DateTimeField()),
                ('updated_at', models.DateTimeField()),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='gateway_routes', to='tenancy.tenant')),
            ],
            options={
                'ordering': ['name', 'id'],
                'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='gateway_route_name_once'), models.CheckConstraint(condition=models.Q(('credentials__contained_by', ['serial', 'bearer', 'dpop']), ('credentials__len__gt', 0)), name='gateway_credentials_known'), models.CheckConstraint(condition=models.Q(('highest_band__in', ('low', 'medium', 'high'))), name='gateway_band_known'), models.CheckConstraint(condition=models.Q(('root__in', ['any', 'verified'])), name='gateway_root_known'), models.CheckConstraint(condition=models.Q(('agents__in', ['own', 'any'])), name='gateway_agents_known'), models.CheckConstraint(condition=models.Q(('root', 'any'), models.Q(('credentials__contains', ['serial']), _negated=True), _connector='OR'), name='gateway_serial_verifies_no_root'), models.CheckConstraint(condition=models.Q(('nonce_required', False), ('credentials__contains', ['dpop']), _connector='OR'), name='gateway_nonce_needs_proofs')],
            },
        ),
    ]
