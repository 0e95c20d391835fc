"""The daily figures move to a room of their own, `events.figures`; their table stays as it is."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("inbox", "0001_initial")]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[migrations.DeleteModel("DayFigures")])
    ]
