"""Look at the rows that were there, while others go on writing."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("events", "e001_columns")]

    operations = [ValidateConstraint("behaviorevent", "events_weight_positive")]
