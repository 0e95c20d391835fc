"""The audit log's table; a database trigger refuses UPDATE, DELETE and TRUNCATE (migration 0002)."""

from typing import Any, NoReturn

from django.db import models
from django.db.models import CheckConstraint, Index, Q

from auditlog.querysets import AuditEntryQuerySet
from auditlog.vocabulary import ActorType, audit_actions
from compliance.core.identifiers import new_id


class AppendOnly(RuntimeError):
    """An append-only row was about to be changed or deleted; a defect of the calling code."""


class AuditEntry(models.Model):
    """One recorded action. No foreign keys: an entry outlives the rows it names."""

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
            Index(fields=["tenant_id", "-created_at", "-id"], name="auditlog_tenant_time"),
            Index(fields=["tenant_id", "event_type", "-created_at", "-id"], name="auditlog_tenant_type"),
            Index(fields=["tenant_id", "affected_id", "-created_at"], name="auditlog_tenant_affected"),
        ]
        constraints = [
            CheckConstraint(condition=Q(actor_type__in=ActorType.values), name="auditlog_actor_type_known")
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.created_at:%Y-%m-%d %H:%M:%S}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise AppendOnly("Audit entries can't be changed")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AppendOnly("Audit entries can't be deleted")
