from django.db import migrations, models

OLD, NEW = 'approvals_one_pending_an_act', 'approvals_one_pending_a_type'
BY_TYPE = (
    f'CREATE UNIQUE INDEX CONCURRENTLY {NEW} ON approvals_approval'
    " (tenant_id, agent_id, action_hash, action_type) NULLS NOT DISTINCT WHERE status = 'pending'"
)


class Migration(migrations.Migration):

    atomic = False
    dependencies = [('approvals', '0002_owner_link')]

    operations = [
        # An interrupted run leaves an index that is not used
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL([
                *('SET lock_timeout = 0', 'SET statement_timeout = 0'),
                *(f'DROP INDEX CONCURRENTLY IF EXISTS {NEW}', BY_TYPE, f'DROP INDEX CONCURRENTLY IF EXISTS {OLD}'),
                *('RESET lock_timeout', 'RESET statement_timeout'),
            ], migrations.RunSQL.noop)],
            [
                migrations.RemoveConstraint(model_name='approval', name=OLD),
                migrations.AddConstraint(
                    model_name='approval',
                    constraint=models.UniqueConstraint(condition=models.Q(('status', 'pending')), fields=('tenant', 'agent_id', 'action_hash', 'action_type'), name=NEW, nulls_distinct=False),
                ),
            ],
        ),
    ]
