import compliance.core.identifiers
import django.contrib.postgres.fields
import django.db.models.deletion
import signals.models
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('tenancy', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='FeedPosition',
            fields=[
                ('id', models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ('position', models.BigIntegerField()),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='signals_one_position'), models.CheckConstraint(condition=models.Q(('position__gte', 0)), name='signals_position_counts')],
            },
        ),
        migrations.CreateModel(
            name='Stream',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('audience', models.CharField(max_length=256)),
                ('description', models.CharField(blank=True, max_length=500)),
                ('method', models.CharField(choices=[('urn:ietf:rfc:8935', 'Push'), ('urn:ietf:rfc:8936', 'Poll')], max_length=32)),
                ('endpoint_url', models.CharField(blank=True, max_length=2048)),
                ('authorization', models.BinaryField(null=True)),
                ('events_requested', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=256), size=None)),
                ('status', models.CharField(choices=[('enabled', 'Enabled'), ('paused', 'Paused'), ('disabled', 'Disabled')], default='enabled', max_length=16)),
                ('status_reason', models.CharField(blank=True, max_length=255)),
                ('consecutive_failures', models.PositiveIntegerField(default=0)),
                ('failing_since', models.DateTimeField(null=True)),
                ('next_attempt_at', models.DateTimeField(null=True)),
                ('pace', models.CharField(choices=[('unknown', 'Unknown'), ('quick', 'Quick'), ('slow', 'Slow')], db_default='unknown', default='unknown', max_length=16)),
                ('last_delivered_at', models.DateTimeField(null=True)),
                ('last_error', models.CharField(blank=True, max_length=255)),
                ('verification_asked_at', models.DateTimeField(null=True)),
                ('lease', models.UUIDField(null=True)),
                ('leased_until', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField()),
                ('updated_at', models.DateTimeField()),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='signal_streams', to='tenancy.tenant')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='Signal',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('jti', models.UUIDField()),
                ('entry_id', models.UUIDField(null=True)),
                ('event', models.CharField(choices=signals.models.signal_events, max_length=128)),
                ('claims', models.JSONField()),
                ('token', models.TextField(blank=True)),
                ('kid', models.CharField(blank=True, max_length=64)),
                ('attempt_count', models.PositiveIntegerField(default=0)),
                ('created_at', models.DateTimeField()),
                ('refused_at', models.DateTimeField(null=True)),
                ('error', models.CharField(blank=True, max_length=255)),
                ('stream', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='signals', to='signals.stream')),
            ],
            options={
                'ordering': ['id'],
            },
        ),
        migrations.AddIndex(
            model_name='stream',
            index=models.Index(fields=['tenant', '-created_at', '-id'], name='signals_stream_tenant_time'),
        ),
        migrations.AddConstraint(
            model_name='stream',
            constraint=models.CheckConstraint(condition=models.Q(('method__in', ['urn:ietf:rfc:8935', 'urn:ietf:rfc:8936'])), name='signals_method_known'),
        ),
        migrations.AddConstraint(
            model_name='stream',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['enabled', 'paused', 'disabled'])), name='signals_status_known'),
        ),
        migrations.AddConstraint(
            model_name='stream',
            constraint=models.CheckConstraint(condition=models.Q(('pace__in', ['unknown', 'quick', 'slow'])), name='signals_pace_known'),
        ),
        migrations.AddConstraint(
            model_name='stream',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('method', 'urn:ietf:rfc:8935'), models.Q(('endpoint_url', ''), _negated=True)), models.Q(('authorization', None), ('endpoint_url', ''), ('method', 'urn:ietf:rfc:8936')), _connector='OR'), name='signals_push_has_endpoint'),
        ),
        migrations.AddConstraint(
            model_name='stream',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('lease', None), ('leased_until', None)), models.Q(('lease__isnull', False), ('leased_until__isnull', False)), _connector='OR'), name='signals_lease_ends'),
        ),
        migrations.AddIndex(
            model_name='signal',
            index=models.Index(condition=models.Q(('refused_at', None)), fields=['stream', 'id'], name='signals_waiting'),
        ),
        migrations.AddIndex(
            model_name='signal',
            index=models.Index(condition=models.Q(('refused_at__isnull', False)), fields=['refused_at'], name='signals_refused'),
        ),
        migrations.AddConstraint(
            model_name='signal',
            constraint=models.UniqueConstraint(fields=('stream', 'jti'), name='signals_once_in_a_stream'),
        ),
    ]
