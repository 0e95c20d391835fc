"""The lease of the scheduler."""

from django.db import models


class SchedulerLease(models.Model):
    """The one scheduler that sends tasks, until `held_until` unless it extends that."""

    name = models.CharField(primary_key=True, max_length=32)
    holder = models.UUIDField()
    held_until = models.DateTimeField()

    class Meta:
        ordering = ["name"]
