from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models.fields.json import KT


class Migration(migrations.Migration):

    atomic = False
    dependencies = [
        ('auditlog', '0001_initial'),
    ]

    operations = [
        # An interrupted run leaves an index that is not used
        migrations.RunSQL([
            'SET lock_timeout = 0',
            'SET statement_timeout = 0',
            'DROP INDEX CONCURRENTLY IF EXISTS auditlog_signed_payload',
        ], migrations.RunSQL.noop),
        AddIndexConcurrently(
            model_name='auditentry',
            index=models.Index(KT('metadata__payload_hash'), models.F('created_at'), condition=models.Q(('event_type', 'message.signed')), name='auditlog_signed_payload'),
        ),
        migrations.RunSQL(['RESET lock_timeout', 'RESET statement_timeout'], migrations.RunSQL.noop),
    ]
