from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0003_owner'),
    ]

    operations = [
        migrations.AddField(
            model_name='agent',
            name='dormant_at',
            field=models.DateTimeField(null=True),
        ),
    ]
