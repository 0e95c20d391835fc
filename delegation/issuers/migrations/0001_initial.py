import compliance.core.identifiers
import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('tenancy', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='TrustedIssuer',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('issuer', models.CharField(max_length=255)),
                ('jwks_uri', models.CharField(max_length=2048, null=True)),
                ('jwks', models.JSONField(null=True)),
                ('audiences', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=255), size=None)),
                ('algorithms', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=16), size=None)),
                ('subject_claim', models.CharField(max_length=255)),
                ('required_claims', models.JSONField(default=dict)),
                ('max_age_seconds', models.PositiveIntegerField(validators=[django.core.validators.MinValueValidator(60), django.core.validators.MaxValueValidator(86400)])),
                ('active', models.BooleanField(default=True)),
                ('created_at', models.DateTimeField()),
                ('updated_at', models.DateTimeField()),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='trusted_issuers', to='tenancy.tenant')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
                'constraints': [models.UniqueConstraint(fields=('tenant', 'issuer'), name='issuers_one_of_a_tenant'), models.CheckConstraint(condition=models.Q(('issuer', ''), _negated=True), name='issuers_issuer_present'), models.CheckConstraint(condition=models.Q(('audiences', []), _negated=True), name='issuers_audiences_present'), models.CheckConstraint(condition=models.Q(('algorithms', []), _negated=True), name='issuers_algorithms_present'), models.CheckConstraint(condition=models.Q(('subject_claim', ''), _negated=True), name='issuers_subject_claim_present'), models.CheckConstraint(condition=models.Q(('jwks', None), ('jwks_uri', None), _connector='OR'), name='issuers_one_source_of_keys')],
            },
        ),
    ]
