import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('tenancy', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='DayFigures',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateField()),
                ('events', models.BigIntegerField(default=0)),
                ('medium', models.BigIntegerField(default=0)),
                ('high', models.BigIntegerField(default=0)),
                ('delivered', models.BigIntegerField(default=0)),
                ('undelivered', models.BigIntegerField(default=0)),
                ('reviews', models.BigIntegerField(default=0)),
                ('review_delay', models.FloatField(null=True)),
                ('revocations', models.BigIntegerField(default=0)),
                ('revocation_delay', models.FloatField(null=True)),
                ('longest_revocation_delay', models.FloatField(null=True)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'db_table': 'inbox_dayfigures',
                'ordering': ['-day', 'tenant_id', 'id'],
                'constraints': [models.UniqueConstraint(fields=('day', 'tenant'), name='inbox_day_once')],
            },
        ),
    ]
