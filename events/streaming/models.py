"""The positions that streams have reached."""

from django.db import models


class StreamPosition(models.Model):
    """A stream's position: the receiver has taken what is before `upto`.

    `name`: receiver and source, as `s3.events`. `upto`: the lowest id of an event not sent yet, or the place
    in the audit log's tree as a number. `caught_up_at`: when nothing was left last. `problem`: why the last
    try failed, `retry_at` the time of the next one.
    """

    name = models.CharField(primary_key=True, max_length=32)
    upto = models.UUIDField()
    caught_up_at = models.DateTimeField()
    failures = models.PositiveIntegerField(default=0)
    retry_at = models.DateTimeField(null=True)
    problem = models.CharField(max_length=255, default="", blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return f"{self.name} {self.upto}"
