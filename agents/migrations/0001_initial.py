import compliance.core.identifiers
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('tenancy', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Agent',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=255)),
                ('description', models.TextField(null=True)),
                ('model', models.CharField(max_length=255, null=True)),
                ('model_hash', models.CharField(max_length=512)),
                ('version', models.CharField(max_length=255, null=True)),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('active', 'Active'), ('suspended', 'Suspended'), ('retired', 'Retired')], default='pending', max_length=16)),
                ('status_reason', models.CharField(blank=True, max_length=500)),
                ('status_changed_at', models.DateTimeField()),
                ('stopped_by_strikes', models.PositiveIntegerField(null=True)),
                ('reinstated_at', models.DateTimeField(null=True)),
                ('enforcement', models.CharField(choices=[('enforce', 'Enforce'), ('observe', 'Observe')], max_length=16, null=True)),
                ('inbox_address', models.CharField(max_length=320, null=True)),
                ('metadata', models.JSONField(null=True)),
                ('financial_scope', models.JSONField(null=True)),
                ('agent_card', models.JSONField(null=True)),
                ('risk_score', models.FloatField(default=0.0)),
                ('risk_updated_at', models.DateTimeField(null=True)),
                ('last_high_risk_at', models.DateTimeField(null=True)),
                ('would_have_stopped_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField()),
                ('updated_at', models.DateTimeField()),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='agents', to='tenancy.tenant')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(fields=['tenant', '-created_at', '-id'], name='agents_tenant_time')],
                'constraints': [models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'active', 'suspended', 'retired'])), name='agents_status_known'), models.CheckConstraint(condition=models.Q(('enforcement__in', ['enforce', 'observe'])), name='agents_enforcement_known'), models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='agents_name_present'), models.CheckConstraint(condition=models.Q(('model_hash', ''), _negated=True), name='agents_model_hash_present'), models.CheckConstraint(condition=models.Q(('risk_score__gte', 0), ('risk_score__lte', 1)), name='agents_risk_in_range')],
            },
        ),
    ]
