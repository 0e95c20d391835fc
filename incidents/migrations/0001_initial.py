import compliance.core.identifiers
import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

FUNCTIONS = r"""
CREATE FUNCTION incidents_refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'restrict_violation';
END
$$;
"""
TRIGGERS = r"""
CREATE TRIGGER incidents_timeline_no_change BEFORE UPDATE OR DELETE ON incidents_timelineentry
    FOR EACH ROW EXECUTE FUNCTION incidents_refuse_change();
CREATE TRIGGER incidents_timeline_no_truncate BEFORE TRUNCATE ON incidents_timelineentry
    FOR EACH STATEMENT EXECUTE FUNCTION incidents_refuse_change();
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('tenancy', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Incident',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('agent_id', models.UUIDField()),
                ('agent_name', models.CharField(max_length=255)),
                ('title', models.CharField(max_length=255)),
                ('cause', models.CharField(choices=[('threshold', 'Automatic revocation'), ('revocation', 'Revocation by a person or key'), ('verdict', 'Confirmed high-risk event')], max_length=16)),
                ('state', models.CharField(choices=[('open', 'Open'), ('contained', 'Contained'), ('closed', 'Closed'), ('merged', 'Merged')], default='open', max_length=16)),
                ('severity', models.CharField(choices=[('low', 'Low'), ('medium', 'Medium'), ('high', 'High'), ('critical', 'Critical')], default='high', max_length=16)),
                ('owner', models.CharField(blank=True, max_length=255)),
                ('detected_at', models.DateTimeField()),
                ('opened_at', models.DateTimeField()),
                ('contained_at', models.DateTimeField(null=True)),
                ('closed_at', models.DateTimeField(null=True)),
                ('updated_at', models.DateTimeField()),
                ('aware_at', models.DateTimeField(null=True)),
                ('serious_harm', models.CharField(choices=[('undecided', 'Undecided'), ('not_serious', 'Not a serious incident'), ('death', 'Death of a person'), ('health', 'Serious harm to health'), ('critical_infrastructure', 'Serious disruption of critical infrastructure'), ('fundamental_rights', 'Infringement of fundamental rights obligations'), ('property_or_environment', 'Serious harm to property or the environment'), ('widespread_infringement', 'Widespread infringement')], default='undecided', max_length=32)),
                ('ai_act_reported_at', models.DateTimeField(null=True)),
                ('dora_class', models.CharField(choices=[('undecided', 'Undecided'), ('not_major', 'Not major, or DORA does not apply'), ('major', 'Major')], default='undecided', max_length=16)),
                ('classified_at', models.DateTimeField(null=True)),
                ('dora_initial_at', models.DateTimeField(null=True)),
                ('dora_intermediate_at', models.DateTimeField(null=True)),
                ('dora_final_at', models.DateTimeField(null=True)),
                ('announced', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=128), default=list, size=None)),
                ('next_announcement_at', models.DateTimeField(null=True)),
                ('next_due_at', models.DateTimeField(null=True)),
                ('merged_into', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='merged', to='incidents.incident')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='incidents', to='tenancy.tenant')),
            ],
            options={
                'ordering': ['-opened_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='TimelineEntry',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('opened', 'Opened'), ('joined', 'Joined'), ('changed', 'Changed'), ('note', 'Note'), ('attachment', 'Attachment'), ('deadline_near', 'Deadline Near'), ('deadline_missed', 'Deadline Missed'), ('drafted', 'Drafted'), ('merged', 'Merged')], max_length=16)),
                ('at', models.DateTimeField()),
                ('actor_kind', models.CharField(choices=[('person', 'Person'), ('api_key', 'Api Key'), ('agent', 'Agent'), ('system', 'System')], max_length=16)),
                ('actor_id', models.CharField(max_length=255)),
                ('text', models.TextField()),
                ('event_id', models.UUIDField(null=True)),
                ('certificate_id', models.UUIDField(null=True)),
                ('serial_number', models.CharField(blank=True, max_length=64)),
                ('data', models.JSONField(null=True)),
                ('incident', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='timeline', to='incidents.incident')),
            ],
            options={
                'verbose_name_plural': 'timeline entries',
                'ordering': ['at', 'id'],
            },
        ),
        migrations.CreateModel(
            name='TouchedAgent',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('agent_id', models.UUIDField()),
                ('agent_name', models.CharField(max_length=255)),
                ('since', models.DateTimeField()),
                ('why', models.TextField()),
                ('case_number', models.CharField(blank=True, max_length=64)),
                ('is_current', models.BooleanField(default=True)),
                ('incident', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='agents', to='incidents.incident')),
            ],
            options={
                'ordering': ['since', 'id'],
            },
        ),
        migrations.CreateModel(
            name='TouchedCertificate',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('agent_id', models.UUIDField()),
                ('certificate_id', models.UUIDField()),
                ('serial_number', models.CharField(max_length=64)),
                ('since', models.DateTimeField()),
                ('why', models.TextField()),
                ('incident', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='certificates', to='incidents.incident')),
            ],
            options={
                'ordering': ['since', 'id'],
            },
        ),
        migrations.AddIndex(
            model_name='incident',
            index=models.Index(fields=['tenant', '-opened_at', '-id'], name='incidents_tenant_time'),
        ),
        migrations.AddIndex(
            model_name='incident',
            index=models.Index(condition=models.Q(('next_announcement_at__isnull', False)), fields=['next_announcement_at'], name='incidents_to_announce'),
        ),
        migrations.AddConstraint(
            model_name='incident',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['open', 'contained', 'closed', 'merged'])), name='incidents_state_known'),
        ),
        migrations.AddConstraint(
            model_name='incident',
            constraint=models.CheckConstraint(condition=models.Q(('severity__in', ['low', 'medium', 'high', 'critical'])), name='incidents_severity_known'),
        ),
        migrations.AddConstraint(
            model_name='incident',
            constraint=models.CheckConstraint(condition=models.Q(('cause__in', ['threshold', 'revocation', 'verdict'])), name='incidents_cause_known'),
        ),
        migrations.AddConstraint(
            model_name='incident',
            constraint=models.CheckConstraint(condition=models.Q(('serious_harm__in', ['undecided', 'not_serious', 'death', 'health', 'critical_infrastructure', 'fundamental_rights', 'property_or_environment', 'widespread_infringement'])), name='incidents_harm_known'),
        ),
        migrations.AddConstraint(
            model_name='incident',
            constraint=models.CheckConstraint(condition=models.Q(('dora_class__in', ['undecided', 'not_major', 'major'])), name='incidents_dora_known'),
        ),
        migrations.AddConstraint(
            model_name='incident',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('closed_at__isnull', False), ('state__in', ('closed', 'merged'))), models.Q(models.Q(('state__in', ('closed', 'merged')), _negated=True), ('closed_at', None)), _connector='OR'), name='incidents_closed_has_time'),
        ),
        migrations.AddConstraint(
            model_name='incident',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('merged_into__isnull', False), ('state', 'merged')), models.Q(models.Q(('state', 'merged'), _negated=True), ('merged_into', None)), _connector='OR'), name='incidents_merged_has_other'),
        ),
        migrations.AddConstraint(
            model_name='incident',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('classified_at__isnull', False), ('dora_class', 'major')), models.Q(models.Q(('dora_class', 'major'), _negated=True), ('classified_at', None)), _connector='OR'), name='incidents_major_has_time'),
        ),
        migrations.AddIndex(
            model_name='timelineentry',
            index=models.Index(fields=['incident', 'at', 'id'], name='incidents_timeline'),
        ),
        migrations.AddConstraint(
            model_name='timelineentry',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['opened', 'joined', 'changed', 'note', 'attachment', 'deadline_near', 'deadline_missed', 'drafted', 'merged'])), name='incidents_entry_kind_known'),
        ),
        migrations.AddConstraint(
            model_name='timelineentry',
            constraint=models.CheckConstraint(condition=models.Q(('actor_kind__in', ['person', 'api_key', 'agent', 'system'])), name='incidents_entry_actor_known'),
        ),
        migrations.AddIndex(
            model_name='touchedagent',
            index=models.Index(fields=['agent_id'], name='incidents_of_agent'),
        ),
        migrations.AddIndex(
            model_name='touchedagent',
            index=models.Index(condition=models.Q(('is_current', True)), fields=['case_number'], name='incidents_of_case'),
        ),
        migrations.AddConstraint(
            model_name='touchedagent',
            constraint=models.UniqueConstraint(fields=('incident', 'agent_id'), name='incidents_agent_once'),
        ),
        migrations.AddConstraint(
            model_name='touchedagent',
            constraint=models.UniqueConstraint(condition=models.Q(('is_current', True)), fields=('agent_id',), name='incidents_one_open_for_agent'),
        ),
        migrations.AddConstraint(
            model_name='touchedcertificate',
            constraint=models.UniqueConstraint(fields=('incident', 'certificate_id'), name='incidents_certificate_once'),
        ),
        migrations.RunSQL(FUNCTIONS),
        migrations.RunSQL(TRIGGERS),
    ]
