from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0007_blueprint_index'),
    ]

    operations = [
        migrations.RemoveField(
            model_name='renewedagent',
            name='replaced_id',
        ),
    ]
