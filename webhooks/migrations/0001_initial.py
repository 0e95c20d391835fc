import compliance.core.identifiers
import django.contrib.postgres.fields
import django.db.models.deletion
import webhooks.vocabulary
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('tenancy', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Message',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('event', models.CharField(choices=webhooks.vocabulary.deliverable_events, max_length=64)),
                ('body', models.BinaryField()),
                ('created_at', models.DateTimeField()),
                ('request_id', models.CharField(blank=True, db_default='', default='', max_length=128)),
                ('traceparent', models.CharField(blank=True, db_default='', default='', max_length=55)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('url', models.CharField(max_length=2048)),
                ('events', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=webhooks.vocabulary.event_names, max_length=64), size=None)),
                ('description', models.CharField(blank=True, max_length=500)),
                ('active', models.BooleanField(default=True)),
                ('secret', models.BinaryField()),
                ('secret_hint', models.CharField(max_length=32)),
                ('previous_secret', models.BinaryField(null=True)),
                ('previous_secret_until', models.DateTimeField(null=True)),
                ('consecutive_failures', models.PositiveIntegerField(default=0)),
                ('failed_deliveries', models.PositiveIntegerField(default=0)),
                ('failing_since', models.DateTimeField(null=True)),
                ('disabled_at', models.DateTimeField(null=True)),
                ('pace', models.CharField(choices=[('unknown', 'Unknown'), ('quick', 'Quick'), ('slow', 'Slow')], default='unknown', max_length=16)),
                ('created_at', models.DateTimeField()),
                ('updated_at', models.DateTimeField()),
                ('deleted_at', models.DateTimeField(null=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='webhooks', to='tenancy.tenant')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('in_flight', 'In Flight'), ('succeeded', 'Succeeded'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='pending', max_length=16)),
                ('trigger', models.CharField(choices=[('event', 'Event'), ('test', 'Test'), ('redelivery', 'Redelivery'), ('note', 'Note')], default='event', max_length=16)),
                ('attempt_count', models.PositiveSmallIntegerField(default=0)),
                ('max_attempts', models.PositiveSmallIntegerField(default=4)),
                ('next_attempt_at', models.DateTimeField(null=True)),
                ('lease', models.UUIDField(null=True)),
                ('leased_until', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField()),
                ('completed_at', models.DateTimeField(null=True)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenancy.tenant')),
                ('message', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='webhooks.message')),
                ('webhook', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='webhooks.webhook')),
            ],
            options={
                'verbose_name_plural': 'deliveries',
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='Attempt',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveSmallIntegerField()),
                ('url', models.CharField(max_length=2048)),
                ('started_at', models.DateTimeField()),
                ('duration_ms', models.PositiveIntegerField(null=True)),
                ('response_status', models.PositiveSmallIntegerField(null=True)),
                ('response_body', models.TextField(null=True)),
                ('error', models.CharField(max_length=255, null=True)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenancy.tenant')),
                ('delivery', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='attempts', to='webhooks.delivery')),
            ],
            options={
                'ordering': ['number', 'id'],
                'constraints': [models.UniqueConstraint(fields=('delivery', 'number'), name='webhooks_attempt_numbered_once')],
            },
        ),
        migrations.AddIndex(
            model_name='webhook',
            index=models.Index(fields=['tenant', '-created_at', '-id'], name='webhooks_tenant_time'),
        ),
        migrations.AddConstraint(
            model_name='webhook',
            constraint=models.CheckConstraint(condition=models.Q(('events', []), _negated=True), name='webhooks_events_present'),
        ),
        migrations.AddConstraint(
            model_name='webhook',
            constraint=models.CheckConstraint(condition=models.Q(('url', ''), _negated=True), name='webhooks_url_present'),
        ),
        migrations.AddConstraint(
            model_name='webhook',
            constraint=models.CheckConstraint(condition=models.Q(('pace__in', ['unknown', 'quick', 'slow'])), name='webhooks_pace_known'),
        ),
        migrations.AddConstraint(
            model_name='webhook',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('previous_secret', None), ('previous_secret_until', None)), models.Q(('previous_secret__isnull', False), ('previous_secret_until__isnull', False)), _connector='OR'), name='webhooks_previous_secret_ends'),
        ),
        migrations.AddConstraint(
            model_name='webhook',
            constraint=models.CheckConstraint(condition=models.Q(('disabled_at', None), ('active', False), _connector='OR'), name='webhooks_disabled_is_inactive'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(fields=['webhook', '-created_at', '-id'], name='webhooks_delivery_history'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('status', 'pending')), fields=['webhook', 'next_attempt_at', 'id'], name='webhooks_delivery_due'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('status', 'in_flight')), fields=['webhook', 'leased_until'], name='webhooks_delivery_leased'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.UniqueConstraint(condition=models.Q(('trigger', 'event')), fields=('webhook', 'message'), name='webhooks_one_delivery_of_an_event'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'in_flight', 'succeeded', 'failed', 'cancelled'])), name='webhooks_delivery_status_known'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status', 'in_flight'), _negated=True), models.Q(('lease__isnull', False), ('leased_until__isnull', False)), _connector='OR'), name='webhooks_in_flight_has_lease'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status', 'pending'), _negated=True), ('next_attempt_at__isnull', False), _connector='OR'), name='webhooks_pending_has_time'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('completed_at', None), ('status__in', ['pending', 'in_flight'])), models.Q(('completed_at__isnull', False), ('status__in', ['succeeded', 'failed', 'cancelled'])), _connector='OR'), name='webhooks_finished_has_time'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.CheckConstraint(condition=models.Q(('attempt_count__lte', models.F('max_attempts'))), name='webhooks_attempts_bounded'),
        ),
    ]
