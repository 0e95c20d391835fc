from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='SchedulerLease',
            fields=[
                ('name', models.CharField(max_length=32, primary_key=True, serialize=False)),
                ('holder', models.UUIDField()),
                ('held_until', models.DateTimeField()),
            ],
            options={
                'ordering': ['name'],
            },
        ),
    ]
