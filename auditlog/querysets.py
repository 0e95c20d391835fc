"""Queries for the audit log."""

from typing import TYPE_CHECKING, Any, NoReturn
from uuid import UUID

from django.db import models

if TYPE_CHECKING:
    from auditlog.models import AuditEntry  # noqa: F401


class AuditEntryQuerySet(models.QuerySet["AuditEntry"]):
    """Audit entries; bulk changes are refused here, and by the database's trigger."""

    def for_tenant(self, tenant_id: UUID) -> "AuditEntryQuerySet":
        return self.filter(tenant_id=tenant_id)

    def of_type(self, event_type: str | None) -> "AuditEntryQuerySet":
        return self.filter(event_type=event_type) if event_type else self

    def by_actor_type(self, actor_type: str | None) -> "AuditEntryQuerySet":
        return self.filter(actor_type=actor_type) if actor_type else self

    def about(self, affected_id: object) -> "AuditEntryQuerySet":
        return self.filter(affected_id=str(affected_id))

    def update(self, **kwargs: Any) -> NoReturn:
        raise RuntimeError("Audit entries can't be changed")

    def delete(self) -> NoReturn:
        raise RuntimeError("Audit entries can't be deleted")
