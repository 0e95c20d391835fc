from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):

    atomic = False
    dependencies = [
        ('agents', '0006_blueprints'),
    ]

    operations = [
        # An interrupted run leaves an index that is not used
        migrations.RunSQL([
            'SET lock_timeout = 0',
            'SET statement_timeout = 0',
            'DROP INDEX CONCURRENTLY IF EXISTS agents_of_blueprint',
        ], migrations.RunSQL.noop),
        AddIndexConcurrently(
            model_name='agent',
            index=models.Index(condition=models.Q(('blueprint_id__isnull', False)), fields=['tenant', 'blueprint_id', '-created_at', '-id'], name='agents_of_blueprint'),
        ),
        migrations.RunSQL(['RESET lock_timeout', 'RESET statement_timeout'], migrations.RunSQL.noop),
    ]
