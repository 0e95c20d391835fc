from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):

    atomic = False
    dependencies = [
        ('events', '0002_decision_id'),
    ]

    operations = [
        # An interrupted run leaves an index that is not used
        migrations.RunSQL([
            'SET lock_timeout = 0',
            'SET statement_timeout = 0',
            'DROP INDEX CONCURRENTLY IF EXISTS events_risk_day_of_agent',
        ], migrations.RunSQL.noop),
        AddIndexConcurrently(
            model_name='riskday',
            index=models.Index(fields=['agent', '-day'], name='events_risk_day_of_agent'),
        ),
        migrations.RunSQL(['RESET lock_timeout', 'RESET statement_timeout'], migrations.RunSQL.noop),
    ]
