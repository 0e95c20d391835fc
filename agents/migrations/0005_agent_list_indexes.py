from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):

    atomic = False
    dependencies = [
        ('agents', '0004_dormancy'),
    ]

    operations = [
        # An interrupted run leaves indexes that are not used
        migrations.RunSQL([
            'SET lock_timeout = 0',
            'SET statement_timeout = 0',
            'DROP INDEX CONCURRENTLY IF EXISTS agents_model_hash',
            'DROP INDEX CONCURRENTLY IF EXISTS agents_dormant',
        ], migrations.RunSQL.noop),
        AddIndexConcurrently(
            model_name='agent',
            index=models.Index(fields=['tenant', 'model_hash', '-created_at', '-id'], name='agents_model_hash'),
        ),
        AddIndexConcurrently(
            model_name='agent',
            index=models.Index(condition=models.Q(('dormant_at__isnull', False)), fields=['tenant', '-created_at', '-id'], name='agents_dormant'),
        ),
        migrations.RunSQL(['RESET lock_timeout', 'RESET statement_timeout'], migrations.RunSQL.noop),
    ]
