"""Daily figures of tenants."""

from django.db import models

from events.models import UNCHECKED
from tenancy.models import Tenant


class DayFigures(models.Model):
    """A tenant's UTC day in numbers, for the overview's charts (`events.figures.days`).

    Delays are in seconds: from an event's receipt to its first review (the median, by day of the review), and
    from the event that breached the threshold to the revocation (the median and the longest, by day of it).
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", **UNCHECKED)
    day = models.DateField()
    events = models.BigIntegerField(default=0)
    medium = models.BigIntegerField(default=0)
    high = models.BigIntegerField(default=0)
    delivered = models.BigIntegerField(default=0)
    undelivered = models.BigIntegerField(default=0)
    reviews = models.BigIntegerField(default=0)
    review_delay = models.FloatField(null=True)
    revocations = models.BigIntegerField(default=0)
    revocation_delay = models.FloatField(null=True)
    longest_revocation_delay = models.FloatField(null=True)

    class Meta:
        db_table = "inbox_dayfigures"
        ordering = ["-day", "tenant_id", "id"]
        constraints = [models.UniqueConstraint(fields=["day", "tenant"], name="inbox_day_once")]

    def __str__(self) -> str:
        return f"{self.day:%Y-%m-%d}"
