"""The keys that sign delegation tokens; tokens themselves are stateless and have no table."""

from django.db import models

from compliance.identifiers import new_id
from delegation.lifecycle import KeyStatus
from delegation.querysets import TokenKeyQuerySet


class TokenKey(models.Model):
    """A P-256 key in the environment's HSM token. `active_from` is when it signs, or will sign, first."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    kid = models.CharField(max_length=64, unique=True)
    uri = models.CharField(max_length=2000)
    public_jwk = models.JSONField()
    status = models.CharField(max_length=16, choices=KeyStatus.choices)
    published_at = models.DateTimeField()
    active_from = models.DateTimeField()
    retired_at = models.DateTimeField(null=True)
    destroyed_at = models.DateTimeField(null=True)

    objects = TokenKeyQuerySet.as_manager()

    class Meta:
        ordering = ["-published_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["status"],
                condition=models.Q(status=KeyStatus.ACTIVE),
                name="delegation_one_active_key",
            ),
            models.UniqueConstraint(
                fields=["status"],
                condition=models.Q(status=KeyStatus.PUBLISHED),
                name="delegation_one_next_key",
            ),
            models.CheckConstraint(
                condition=models.Q(status__in=KeyStatus.values), name="delegation_key_status_known"
            ),
            models.CheckConstraint(
                condition=models.Q(status__in=[KeyStatus.PUBLISHED, KeyStatus.ACTIVE], retired_at=None)
                | models.Q(status__in=[KeyStatus.RETIRED, KeyStatus.WITHDRAWN], retired_at__isnull=False),
                name="delegation_key_retired_at_with_status",
            ),
        ]

    def __str__(self) -> str:
        return self.kid
