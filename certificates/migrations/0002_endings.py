from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('certificates', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='certificate',
            name='end_announced',
            field=models.PositiveSmallIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='certificate',
            name='superseded_at',
            field=models.DateTimeField(null=True),
        ),
    ]
