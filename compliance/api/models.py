"""The table of idempotency keys."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import models

from compliance.core.identifiers import new_id

RETENTION = timedelta(hours=24)


class IdempotencyQuerySet(models.QuerySet[Any]):
    """Reads and claims of idempotency keys."""

    def expired(self, now: datetime) -> "IdempotencyQuerySet":
        return self.filter(created_at__lt=now - RETENTION)

    def claim(
        self, *, tenant_id: UUID, api_key_id: UUID, key: str, fingerprint: str, now: datetime
    ) -> "IdempotencyRecord":
        """The API key's record of `key`, locked; waits for a rival in flight."""
        same = self.filter(tenant_id=tenant_id, api_key_id=api_key_id, key=key)
        same.expired(now).delete()
        fresh = IdempotencyRecord(
            tenant_id=tenant_id, api_key_id=api_key_id, key=key, fingerprint=fingerprint, created_at=now
        )
        IdempotencyRecord.objects.bulk_create([fresh], ignore_conflicts=True)
        found: IdempotencyRecord = same.select_for_update().get()
        return found


class IdempotencyRecord(models.Model):
    """One request of an API key; `status` is null until its last portion is done.

    `body` is its answer, before that notes of what is done; encrypted since it may hold a secret shown once.
    `api_key_id` is null in rows made before it was kept; they answer nobody.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant_id = models.UUIDField()
    api_key_id = models.UUIDField(null=True)
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    body = models.BinaryField(default=b"")
    created_at = models.DateTimeField(db_index=True)

    objects = IdempotencyQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "api_key_id", "key"], name="api_idempotency_key_of_api_key"
            )
        ]
