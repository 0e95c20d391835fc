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


class NameOutcome(models.TextChoices):
    """What became of an action: done by the agent's word, or refused, and by what."""

    USED = "used"
    SCOPE = "scope"
    GATEWAY = "gateway"
    EVALUATION = "evaluation"


class ActionDay(models.Model):
    """How often an agent gave the same names in one UTC day of receipt (`events.figures.usage`).

    `names`: the JSON `[action_type, tools, verbs]`, as the scope rule compares them; empty for the names
    beyond the most that are kept of a day.
    """

    agent_id = models.UUIDField()
    day = models.DateField()
    outcome = models.CharField(max_length=16, choices=NameOutcome.choices)
    names = models.TextField(blank=True)
    count = models.BigIntegerField()
    last_at = models.DateTimeField()

    class Meta:
        ordering = ["-day", "agent_id", "id"]
        constraints = [
            # A year of an agent is read from the index alone.
            models.UniqueConstraint(
                fields=["agent_id", "day", "outcome", "names"],
                include=["count", "last_at"],
                name="figures_action_once",
            ),
            models.CheckConstraint(
                condition=models.Q(outcome__in=NameOutcome.values), name="figures_action_outcome_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.day:%Y-%m-%d} {self.outcome} {self.names}"
