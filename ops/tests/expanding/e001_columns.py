"""New columns, which the version before leaves out, and a constraint that counts for new rows first."""

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

from ops.tests.expanding import LATEST


class Migration(migrations.Migration):
    dependencies = [("events", LATEST)]

    operations = [
        migrations.AddField("behaviorevent", "origin", models.TextField(null=True)),
        migrations.AddField("behaviorevent", "weight", models.IntegerField(db_default=1)),
        AddConstraintNotValid(
            "behaviorevent",
            models.CheckConstraint(condition=models.Q(weight__gte=0), name="events_weight_positive"),
        ),
    ]
