import compliance.core.identifiers
import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

TRIGGERS = r"""
CREATE TRIGGER incidents_draft_no_change BEFORE UPDATE OR DELETE ON incidents_notificationdraft
    FOR EACH ROW EXECUTE FUNCTION incidents_refuse_change();
CREATE TRIGGER incidents_draft_no_truncate BEFORE TRUNCATE ON incidents_notificationdraft
    FOR EACH STATEMENT EXECUTE FUNCTION incidents_refuse_change();
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('incidents', '0001_initial'),
        ('tenancy', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='ReportSchedule',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('type', models.CharField(choices=[('eu_ai_act', 'EU AI Act'), ('mica', 'MiCA')], max_length=16)),
                ('cadence', models.CharField(choices=[('month', 'Each month'), ('quarter', 'Each quarter')], max_length=16)),
                ('next_start', models.DateTimeField()),
                ('created_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='report_schedules', to='tenancy.tenant')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='Report',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('type', models.CharField(choices=[('eu_ai_act', 'EU AI Act'), ('mica', 'MiCA')], max_length=16)),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('generating', 'Generating'), ('ready', 'Ready'), ('failed', 'Failed')], default='pending', max_length=16)),
                ('period_start', models.DateTimeField()),
                ('period_end', models.DateTimeField()),
                ('agent_ids', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), null=True, size=None)),
                ('document', models.TextField(blank=True)),
                ('pdf', models.BinaryField(default=b'')),
                ('digest', models.CharField(blank=True, max_length=64)),
                ('evidence', models.BinaryField(db_default=b'', default=b'')),
                ('manifest', models.TextField(blank=True, db_default='', default='')),
                ('signature', models.BinaryField(db_default=b'', default=b'')),
                ('signing_key', models.BinaryField(db_default=b'', default=b'')),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('created_at', models.DateTimeField()),
                ('started_at', models.DateTimeField(null=True)),
                ('completed_at', models.DateTimeField(null=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='reports', to='tenancy.tenant')),
                ('schedule', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='reports', to='reports.reportschedule')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='NotificationDraft',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('template', models.CharField(choices=[('ai_act', 'AI Act, Article 73: serious incident report'), ('dora_initial', 'DORA: initial notification'), ('dora_intermediate', 'DORA: intermediate report'), ('dora_final', 'DORA: final report')], max_length=24)),
                ('version', models.PositiveIntegerField()),
                ('document', models.TextField()),
                ('digest', models.CharField(max_length=64)),
                ('actor_kind', models.CharField(choices=[('person', 'Person'), ('api_key', 'Api Key'), ('agent', 'Agent'), ('system', 'System')], max_length=16)),
                ('actor_id', models.CharField(max_length=255)),
                ('created_at', models.DateTimeField()),
                ('incident', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='drafts', to='incidents.incident')),
            ],
            options={
                'db_table': 'incidents_notificationdraft',
                'ordering': ['-created_at', '-id'],
                'constraints': [models.UniqueConstraint(fields=('incident', 'template', 'version'), name='incidents_draft_numbered_once'), models.CheckConstraint(condition=models.Q(('template__in', ['ai_act', 'dora_initial', 'dora_intermediate', 'dora_final'])), name='incidents_draft_template_known')],
            },
        ),
        migrations.AddConstraint(
            model_name='reportschedule',
            constraint=models.CheckConstraint(condition=models.Q(('type__in', ['eu_ai_act', 'mica'])), name='reports_scheduled_type_known'),
        ),
        migrations.AddConstraint(
            model_name='reportschedule',
            constraint=models.CheckConstraint(condition=models.Q(('cadence__in', ['month', 'quarter'])), name='reports_cadence_known'),
        ),
        migrations.AddConstraint(
            model_name='reportschedule',
            constraint=models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('tenant', 'type', 'cadence'), name='reports_one_lasting_schedule'),
        ),
        migrations.AddIndex(
            model_name='report',
            index=models.Index(fields=['tenant', '-created_at', '-id'], name='reports_tenant_time'),
        ),
        migrations.AddIndex(
            model_name='report',
            index=models.Index(fields=['tenant', '-started_at'], name='reports_tenant_turn'),
        ),
        migrations.AddIndex(
            model_name='report',
            index=models.Index(condition=models.Q(('status__in', ['pending', 'generating'])), fields=['created_at'], name='reports_unfinished'),
        ),
        migrations.AddConstraint(
            model_name='report',
            constraint=models.UniqueConstraint(fields=('schedule', 'period_start'), name='reports_one_of_a_period'),
        ),
        migrations.AddConstraint(
            model_name='report',
            constraint=models.CheckConstraint(condition=models.Q(('type__in', ['eu_ai_act', 'mica'])), name='reports_type_known'),
        ),
        migrations.AddConstraint(
            model_name='report',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'generating', 'ready', 'failed'])), name='reports_status_known'),
        ),
        migrations.AddConstraint(
            model_name='report',
            constraint=models.CheckConstraint(condition=models.Q(('period_end__gt', models.F('period_start'))), name='reports_period_has_length'),
        ),
        migrations.AddConstraint(
            model_name='report',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status', 'ready'), models.Q(('document', ''), _negated=True), models.Q(('digest', ''), _negated=True), models.Q(('pdf', b''), _negated=True)), models.Q(models.Q(('status', 'ready'), _negated=True), ('digest', ''), ('document', ''), ('pdf', b'')), _connector='OR'), name='reports_document_when_ready'),
        ),
        migrations.AddConstraint(
            model_name='report',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('manifest', ''), ('signature', b''), ('signing_key', b'')), models.Q(('status', 'ready'), models.Q(('manifest', ''), _negated=True), models.Q(('signature', b''), _negated=True), models.Q(('signing_key', b''), _negated=True)), _connector='OR'), name='reports_manifest_is_signed'),
        ),
        migrations.AddConstraint(
            model_name='report',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('completed_at__isnull', False), ('status__in', ['ready', 'failed'])), models.Q(('completed_at', None), ('status__in', ['pending', 'generating'])), _connector='OR'), name='reports_completed_when_over'),
        ),
        migrations.RunSQL(TRIGGERS),
    ]
