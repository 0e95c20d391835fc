"""Who runs the clock: the lease of the scheduler."""

from django.db import models


class SchedulerLease(models.Model):
    """The one scheduler that sends tasks, until `held_until` unless it extends that, and what it sent when.

    `last_runs`: the Unix time of each entry's last message, by the entry's name.
    """

    name = models.CharField(primary_key=True, max_length=32)
    holder = models.UUIDField()
    held_until = models.DateTimeField()
    last_runs = models.JSONField(default=dict)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
