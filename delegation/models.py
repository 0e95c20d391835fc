"""The keys that sign delegation tokens; tokens themselves are not stored."""

from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint

from compliance.core.identifiers import new_id
from delegation.lifecycle import KeyStatus
from delegation.querysets import TokenKeyQuerySet


class TokenKey(models.Model):
    """A P-256 key in the environment's HSM token. `active_from` is when it begins to sign."""

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
            UniqueConstraint(
                fields=["status"], condition=Q(status=KeyStatus.ACTIVE), name="delegation_one_active_key"
            ),
            UniqueConstraint(
                fields=["status"], condition=Q(status=KeyStatus.PUBLISHED), name="delegation_one_next_key"
            ),
            CheckConstraint(condition=Q(status__in=KeyStatus.values), name="delegation_key_status_known"),
            CheckConstraint(
                condition=Q(status__in=[KeyStatus.PUBLISHED, KeyStatus.ACTIVE], retired_at=None)
                | Q(status__in=[KeyStatus.RETIRED, KeyStatus.WITHDRAWN], retired_at__isnull=False),
                name="delegation_key_retired_at_with_status",
            ),
        ]

    def __str__(self) -> str:
        return self.kid
