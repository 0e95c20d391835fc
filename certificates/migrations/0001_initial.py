import compliance.core.identifiers
import django.db.models.deletion
from django.db import migrations, models

FUNCTIONS = r"""
CREATE FUNCTION certificates_crl_number_rises() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the list number of a CA only rises' USING ERRCODE = 'integrity_constraint_violation';
END
$$;

CREATE FUNCTION certificates_list_number_rises() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    -- Whoever else adds a list of this CA waits here, and then sees this one.
    PERFORM 1 FROM certificates_certificateauthority WHERE id = NEW.authority_id FOR NO KEY UPDATE;
    IF EXISTS (
        SELECT 1 FROM certificates_revocationlist
        WHERE authority_id = NEW.authority_id AND scope = NEW.scope AND number >= NEW.number
    ) THEN
        RAISE EXCEPTION 'the number of a revocation list only rises: % refused', NEW.number
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END
$$;
"""
TRIGGERS = r"""
CREATE TRIGGER certificates_crl_number_rises BEFORE UPDATE ON certificates_certificateauthority
    FOR EACH ROW WHEN ((new.crl_number < old.crl_number)) EXECUTE FUNCTION certificates_crl_number_rises();
CREATE TRIGGER certificates_list_number_rises BEFORE INSERT ON certificates_revocationlist
    FOR EACH ROW EXECUTE FUNCTION certificates_list_number_rises();
"""
STORAGE = r"""
ALTER TABLE certificates_revocationlistpart ALTER COLUMN body SET STORAGE EXTERNAL;
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('agents', '0001_initial'),
        ('tenancy', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='PooledKey',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('key_uri', models.CharField(max_length=2000, unique=True)),
                ('spki', models.BinaryField()),
                ('storage', models.CharField(choices=[('resident', 'resident'), ('wrapped', 'wrapped')], db_default='resident', default='resident', max_length=16)),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'ordering': ['created_at', 'id'],
            },
        ),
        migrations.CreateModel(
            name='SignedCard',
            fields=[
                ('agent', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='+', serialize=False, to='agents.agent')),
                ('digest', models.CharField(max_length=64)),
                ('signature', models.CharField(max_length=1024)),
                ('signed_at', models.DateTimeField()),
            ],
            options={
                'ordering': ['-signed_at', 'agent_id'],
            },
        ),
        migrations.CreateModel(
            name='CertificateAuthority',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('role', models.CharField(choices=[('root', 'Root'), ('issuing', 'Issuing')], max_length=16)),
                ('common_name', models.CharField(max_length=64)),
                ('serial_number', models.CharField(max_length=40, unique=True)),
                ('key_uri', models.CharField(max_length=2000, unique=True)),
                ('certificate_der', models.BinaryField()),
                ('certificate_url', models.CharField(max_length=2000)),
                ('crl_url', models.CharField(max_length=2000)),
                ('ocsp_url', models.CharField(blank=True, max_length=2000)),
                ('crl_shards', models.PositiveSmallIntegerField(default=0)),
                ('crl_number', models.PositiveBigIntegerField(default=0)),
                ('crl_completed', models.PositiveBigIntegerField(default=0)),
                ('crl_lease_holder', models.UUIDField(null=True)),
                ('crl_lease_until', models.DateTimeField(null=True)),
                ('not_before', models.DateTimeField()),
                ('not_after', models.DateTimeField()),
                ('retired_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField()),
                ('parent', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='children', to='certificates.certificateauthority')),
            ],
            options={
                'verbose_name_plural': 'certificate authorities',
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='Certificate',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('serial_number', models.CharField(max_length=40, unique=True)),
                ('kms_key_arn', models.CharField(max_length=2000, unique=True)),
                ('key_storage', models.CharField(choices=[('resident', 'resident'), ('wrapped', 'wrapped')], db_default='resident', default='resident', max_length=16)),
                ('certificate_pem', models.TextField()),
                ('claims', models.JSONField()),
                ('status', models.CharField(choices=[('active', 'Active'), ('revoked', 'Revoked'), ('expired', 'Expired')], default='active', max_length=16)),
                ('not_before', models.DateTimeField()),
                ('issued_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('revoked_at', models.DateTimeField(null=True)),
                ('revocation_reason', models.CharField(max_length=500, null=True)),
                ('revocation_code', models.CharField(blank=True, max_length=32)),
                ('crl_shard', models.PositiveSmallIntegerField(null=True)),
                ('crl_entry', models.BinaryField(null=True)),
                ('first_crl_number', models.PositiveBigIntegerField(null=True)),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='certificates', to='agents.agent')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='certificates', to='tenancy.tenant')),
                ('authority', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='certificates', to='certificates.certificateauthority')),
            ],
            options={
                'ordering': ['-issued_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='EndedHold',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('held_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField()),
                ('crl_entry', models.BinaryField()),
                ('hold_crl_number', models.PositiveBigIntegerField(null=True)),
                ('end_crl_number', models.PositiveBigIntegerField(null=True)),
                ('authority', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='certificates.certificateauthority')),
                ('certificate', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='ended_holds', to='certificates.certificate')),
            ],
            options={
                'ordering': ['-ended_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='Issuance',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('serial_number', models.CharField(max_length=40, unique=True)),
                ('key_uri', models.CharField(max_length=2000)),
                ('state', models.CharField(choices=[('started', 'Started'), ('completed', 'Completed'), ('failed', 'Failed')], default='started', max_length=16)),
                ('error', models.CharField(blank=True, max_length=1000)),
                ('created_at', models.DateTimeField()),
                ('finished_at', models.DateTimeField(null=True)),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='agents.agent')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='OcspResponder',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('serial_number', models.CharField(max_length=40, unique=True)),
                ('key_uri', models.CharField(max_length=2000, unique=True)),
                ('certificate_der', models.BinaryField()),
                ('not_before', models.DateTimeField()),
                ('not_after', models.DateTimeField()),
                ('created_at', models.DateTimeField()),
                ('authority', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='ocsp_responders', to='certificates.certificateauthority')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='RevocationList',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('scope', models.CharField(default='full', max_length=16)),
                ('number', models.PositiveBigIntegerField()),
                ('base_number', models.PositiveBigIntegerField(null=True)),
                ('this_update', models.DateTimeField()),
                ('next_update', models.DateTimeField()),
                ('entry_count', models.PositiveIntegerField()),
                ('size', models.PositiveBigIntegerField(default=0)),
                ('authority', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='revocation_lists', to='certificates.certificateauthority')),
            ],
            options={
                'ordering': ['-this_update', '-id'],
            },
        ),
        migrations.CreateModel(
            name='RevocationListPart',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('position', models.PositiveIntegerField()),
                ('body', models.BinaryField()),
                ('revocation_list', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='parts', to='certificates.revocationlist')),
            ],
            options={
                'ordering': ['revocation_list_id', 'position'],
            },
        ),
        migrations.CreateModel(
            name='WrappingKey',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('key_uri', models.CharField(max_length=2000, unique=True)),
                ('mechanism', models.CharField(choices=[('AES_KEY_WRAP_KWP', 'AES_KEY_WRAP_KWP'), ('AES_KEY_WRAP_PAD', 'AES_KEY_WRAP_PAD')], max_length=32)),
                ('created_at', models.DateTimeField()),
                ('retired_at', models.DateTimeField(null=True)),
                ('destroyed_at', models.DateTimeField(null=True)),
            ],
            options={
                'ordering': ['-created_at', '-id'],
                'constraints': [models.UniqueConstraint(models.Value(1), condition=models.Q(('retired_at', None)), name='certificates_one_key_wraps')],
            },
        ),
        migrations.CreateModel(
            name='WrappedAgentKey',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('key_uri', models.CharField(max_length=2000, unique=True)),
                ('spki', models.BinaryField()),
                ('blob', models.BinaryField()),
                ('created_at', models.DateTimeField()),
                ('wrapping_key', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='wrapped_keys', to='certificates.wrappingkey')),
            ],
            options={
                'ordering': ['created_at', 'id'],
            },
        ),
        migrations.AddConstraint(
            model_name='certificateauthority',
            constraint=models.UniqueConstraint(condition=models.Q(('retired_at', None)), fields=('role',), name='certificates_one_ca_in_service'),
        ),
        migrations.AddConstraint(
            model_name='certificateauthority',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('parent', None), ('role', 'root')), models.Q(('parent__isnull', False), ('role', 'issuing')), _connector='OR'), name='certificates_only_roots_have_no_parent'),
        ),
        migrations.AddIndex(
            model_name='certificate',
            index=models.Index(fields=['tenant', '-issued_at', '-id'], name='certificates_tenant_time'),
        ),
        migrations.AddIndex(
            model_name='certificate',
            index=models.Index(fields=['agent', '-issued_at', '-id'], name='certificates_agent_time'),
        ),
        migrations.AddIndex(
            model_name='certificate',
            index=models.Index(condition=models.Q(('status', 'active')), fields=['expires_at'], name='certificates_due'),
        ),
        migrations.AddIndex(
            model_name='certificate',
            index=models.Index(condition=models.Q(('status', 'revoked')), fields=['authority', 'expires_at'], name='certificates_revoked'),
        ),
        migrations.AddIndex(
            model_name='certificate',
            index=models.Index(condition=models.Q(('first_crl_number', None), ('status', 'revoked')), fields=['authority'], name='certificates_unpublished'),
        ),
        migrations.AddIndex(
            model_name='certificate',
            index=models.Index(condition=models.Q(('status', 'revoked')), fields=['authority', 'crl_shard'], name='certificates_of_shard'),
        ),
        migrations.AddIndex(
            model_name='certificate',
            index=models.Index(condition=models.Q(('status', 'revoked')), fields=['authority', 'first_crl_number'], include=('expires_at', 'crl_shard', 'crl_entry'), name='certificates_by_round'),
        ),
        migrations.AddConstraint(
            model_name='certificate',
            constraint=models.UniqueConstraint(condition=models.Q(('status', 'active')), fields=('agent',), name='certificates_one_active_of_an_agent'),
        ),
        migrations.AddConstraint(
            model_name='certificate',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['active', 'revoked', 'expired'])), name='certificates_status_known'),
        ),
        migrations.AddConstraint(
            model_name='certificate',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('revocation_reason__isnull', False), ('revoked_at__isnull', False), ('status', 'revoked')), models.Q(models.Q(('status', 'revoked'), _negated=True), ('revocation_reason', None), ('revoked_at', None)), _connector='OR'), name='certificates_revoked_says_when_and_why'),
        ),
        migrations.AddConstraint(
            model_name='certificate',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('crl_entry__isnull', False), ('status', 'revoked')), models.Q(models.Q(('status', 'revoked'), _negated=True), ('crl_entry', None)), _connector='OR'), name='certificates_revoked_has_its_entry'),
        ),
        migrations.AddConstraint(
            model_name='certificate',
            constraint=models.CheckConstraint(condition=models.Q(('expires_at__gt', models.F('issued_at'))), name='certificates_end_after_start'),
        ),
        migrations.AddIndex(
            model_name='endedhold',
            index=models.Index(fields=['authority', 'end_crl_number'], name='certificates_hold_ended_in'),
        ),
        migrations.AddIndex(
            model_name='endedhold',
            index=models.Index(condition=models.Q(('end_crl_number', None), ('hold_crl_number__isnull', False)), fields=['authority'], name='certificates_hold_end_unlisted'),
        ),
        migrations.AddConstraint(
            model_name='endedhold',
            constraint=models.CheckConstraint(condition=models.Q(('ended_at__gte', models.F('held_at'))), name='certificates_hold_ends_after_start'),
        ),
        migrations.AddIndex(
            model_name='issuance',
            index=models.Index(condition=models.Q(('state', 'completed'), _negated=True), fields=['created_at'], name='certificates_unfinished'),
        ),
        migrations.AddConstraint(
            model_name='issuance',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['started', 'completed', 'failed'])), name='certificates_issuance_state_known'),
        ),
        migrations.AddIndex(
            model_name='ocspresponder',
            index=models.Index(fields=['authority', '-created_at'], name='certificates_responder_of_ca'),
        ),
        migrations.AddConstraint(
            model_name='revocationlist',
            constraint=models.UniqueConstraint(fields=('authority', 'scope', 'number'), name='certificates_list_number_unique'),
        ),
        migrations.AddConstraint(
            model_name='revocationlistpart',
            constraint=models.UniqueConstraint(fields=('revocation_list', 'position'), name='certificates_list_part_unique'),
        ),
        migrations.AddIndex(
            model_name='wrappedagentkey',
            index=models.Index(fields=['wrapping_key', 'id'], name='certificates_wrapped_by'),
        ),
        migrations.RunSQL(FUNCTIONS),
        migrations.RunSQL(TRIGGERS),
        migrations.RunSQL(STORAGE),
    ]
