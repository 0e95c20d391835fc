import compliance.core.identifiers
import django.db.models.deletion
from django.db import migrations, models

TRIGGERS = r"""
CREATE TRIGGER inbox_comment_no_change BEFORE UPDATE OR DELETE ON inbox_inboxcomment
    FOR EACH ROW EXECUTE FUNCTION events_refuse_change();
CREATE TRIGGER inbox_comment_no_truncate BEFORE TRUNCATE ON inbox_inboxcomment
    FOR EACH STATEMENT EXECUTE FUNCTION events_refuse_change();
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('agents', '0001_initial'),
        ('tenancy', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='AgentQueue',
            fields=[
                ('agent', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='inbox_queue', serialize=False, to='agents.agent')),
                ('assignee', models.CharField(max_length=255, null=True)),
                ('snoozed_at', models.DateTimeField(null=True)),
                ('snoozed_until', models.DateTimeField(null=True)),
                ('updated_at', models.DateTimeField()),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'ordering': ['agent_id'],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('snoozed_at', None), ('snoozed_until', None)), models.Q(('snoozed_at__isnull', False), ('snoozed_until__gt', models.F('snoozed_at'))), _connector='OR'), name='inbox_snooze_ends')],
            },
        ),
        migrations.CreateModel(
            name='InboxComment',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('event_id', models.UUIDField(null=True)),
                ('kind', models.CharField(choices=[('comment', 'Comment'), ('suspended', 'Suspended'), ('revoked', 'Revoked')], default='comment', max_length=16)),
                ('text', models.CharField(max_length=1000)),
                ('case_number', models.CharField(max_length=64, null=True)),
                ('actor_type', models.CharField(choices=[('user', 'User'), ('agent', 'Agent'), ('system', 'System')], max_length=16)),
                ('actor_id', models.CharField(max_length=255)),
                ('created_at', models.DateTimeField()),
                ('agent', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='agents.agent')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'verbose_name': 'comment',
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(fields=['tenant', '-created_at', '-id'], name='inbox_comment_list'), models.Index(fields=['agent', '-created_at', '-id'], name='inbox_comment_of_agent'), models.Index(condition=models.Q(('case_number__isnull', False)), fields=['tenant', 'case_number'], name='inbox_comment_case')],
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['comment', 'suspended', 'revoked'])), name='inbox_comment_kind_known'), models.CheckConstraint(condition=models.Q(('text', ''), _negated=True), name='inbox_comment_not_empty')],
            },
        ),
        migrations.CreateModel(
            name='OpenEvent',
            fields=[
                ('event_id', models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ('action_type', models.CharField(choices=[('api_call', 'Api Call'), ('authentication_attempt', 'Authentication Attempt'), ('authentication_failure', 'Authentication Failure'), ('data_access', 'Data Access'), ('data_mutation', 'Data Mutation'), ('transaction_initiated', 'Transaction Initiated'), ('transaction_anomaly', 'Transaction Anomaly'), ('unauthorized_access_attempt', 'Unauthorized Access Attempt'), ('message_signed', 'Message Signed'), ('message_verification_failed', 'Message Verification Failed')], max_length=32)),
                ('risk_band', models.CharField(choices=[('low', 'low'), ('medium', 'medium'), ('high', 'high')], max_length=8)),
                ('risk_score', models.FloatField()),
                ('received_at', models.DateTimeField()),
                ('agent', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='open_events', to='agents.agent')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'verbose_name': 'event to review',
                'verbose_name_plural': 'review inbox',
                'ordering': ['event_id'],
                'indexes': [models.Index(fields=['agent', 'event_id'], name='inbox_open_of_agent'), models.Index(fields=['tenant', 'risk_band', 'agent', 'received_at'], name='inbox_open_groups')],
                'constraints': [models.CheckConstraint(condition=models.Q(('risk_band__in', ['medium', 'high'])), name='inbox_open_not_low')],
            },
        ),
        migrations.RunSQL(TRIGGERS),
    ]
