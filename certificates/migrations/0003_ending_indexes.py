from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

CURRENT, OVERLAPPING = 'certificates_one_current_of_an_agent', 'certificates_one_overlapping_of_an_agent'
UNIQUE = (
    'CREATE UNIQUE INDEX CONCURRENTLY {} ON certificates_certificate (agent_id, tenant_id)'
    " WHERE status = 'active' AND superseded_at IS {}"
)


class Migration(migrations.Migration):

    atomic = False
    dependencies = [
        ('certificates', '0002_endings'),
    ]

    operations = [
        # An interrupted run leaves indexes that are not used
        migrations.RunSQL([
            'SET lock_timeout = 0',
            'SET statement_timeout = 0',
            f'DROP INDEX CONCURRENTLY IF EXISTS {CURRENT}',
            f'DROP INDEX CONCURRENTLY IF EXISTS {OVERLAPPING}',
            'DROP INDEX CONCURRENTLY IF EXISTS certificates_tenant_end',
            'DROP INDEX CONCURRENTLY IF EXISTS certificates_overlapping',
        ], migrations.RunSQL.noop),
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL([
                    UNIQUE.format(CURRENT, 'NULL'),
                    UNIQUE.format(OVERLAPPING, 'NOT NULL'),
                    'DROP INDEX CONCURRENTLY IF EXISTS certificates_one_active_of_an_agent',
                ], migrations.RunSQL.noop),
            ],
            [
                migrations.RemoveConstraint(
                    model_name='certificate',
                    name='certificates_one_active_of_an_agent',
                ),
                migrations.AddConstraint(
                    model_name='certificate',
                    constraint=models.UniqueConstraint(condition=models.Q(('status', 'active'), ('superseded_at', None)), fields=('agent', 'tenant'), name=CURRENT),
                ),
                migrations.AddConstraint(
                    model_name='certificate',
                    constraint=models.UniqueConstraint(condition=models.Q(('status', 'active'), ('superseded_at__isnull', False)), fields=('agent', 'tenant'), name=OVERLAPPING),
                ),
            ],
        ),
        AddIndexConcurrently(
            model_name='certificate',
            index=models.Index(fields=['tenant', 'expires_at'], name='certificates_tenant_end'),
        ),
        AddIndexConcurrently(
            model_name='certificate',
            index=models.Index(condition=models.Q(('superseded_at__isnull', False), models.Q(('status', 'active'), ('revocation_code', 'certificateHold'), _connector='OR')), fields=['superseded_at'], name='certificates_overlapping'),
        ),
        migrations.RunSQL(['RESET lock_timeout', 'RESET statement_timeout'], migrations.RunSQL.noop),
    ]
