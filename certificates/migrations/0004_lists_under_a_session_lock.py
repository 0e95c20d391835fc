from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('certificates', '0003_ending_indexes'),
    ]

    operations = [
        # The columns stay: processes of the version before read them.
        migrations.SeparateDatabaseAndState([], [
            migrations.RemoveField('certificateauthority', 'crl_lease_holder'),
            migrations.RemoveField('certificateauthority', 'crl_lease_until'),
        ]),
    ]
