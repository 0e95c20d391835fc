"""The audit log's table; a database trigger refuses UPDATE, DELETE and TRUNCATE (migration 0002)."""

from typing import Any, NoReturn

from django.db import models

from auditlog.querysets import AuditEntryQuerySet
from auditlog.vocabulary import ActorType, audit_actions
from compliance.identifiers import new_id


class AppendOnly(RuntimeError):
    """Somebody tried to change or delete an audit entry."""


class AuditEntry(models.Model):
    """One thing that happened. No foreign keys: an entry outlives what it tells of."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant_id = models.UUIDField()
    event_type = models.CharField(max_length=64, choices=audit_actions)
    actor_type = models.CharField(max_length=16, choices=ActorType.choices)
    actor_id = models.CharField(max_length=255)
    description = models.TextField(null=True)  # noqa: DJ001  (the specification's field is nullable)
    affected_id = models.CharField(max_length=255, null=True)  # noqa: DJ001
    metadata = models.JSONField(null=True)
    created_at = models.DateTimeField()

    objects = AuditEntryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "audit entries"
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["tenant_id", "-created_at", "-id"], name="auditlog_tenant_time"),
            models.Index(
                fields=["tenant_id", "event_type", "-created_at", "-id"], name="auditlog_tenant_type"
            ),
            models.Index(fields=["tenant_id", "affected_id", "-created_at"], name="auditlog_tenant_affected"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(actor_type__in=ActorType.values), name="auditlog_actor_type_known"
            )
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.created_at:%Y-%m-%d %H:%M:%S}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise AppendOnly("Audit entries can't be changed")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AppendOnly("Audit entries can't be deleted")
