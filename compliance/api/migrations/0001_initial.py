import compliance.core.identifiers
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='IdempotencyRecord',
            fields=[
                ('id', models.UUIDField(default=compliance.core.identifiers.new_id, editable=False, primary_key=True, serialize=False)),
                ('tenant_id', models.UUIDField()),
                ('api_key_id', models.UUIDField(null=True)),
                ('key', models.CharField(max_length=255)),
                ('fingerprint', models.CharField(max_length=64)),
                ('status', models.PositiveSmallIntegerField(null=True)),
                ('body', models.BinaryField(default=b'')),
                ('created_at', models.DateTimeField(db_index=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant_id', 'api_key_id', 'key'), name='api_idempotency_key_of_api_key')],
            },
        ),
    ]
