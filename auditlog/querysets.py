"""Queries for the audit log and its keys."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

from django.db import models
from django.db.models import Q

from auditlog.errors import EntryNotFound
from compliance.stores.rows import AppendOnly, TenantRows

if TYPE_CHECKING:
    from auditlog.models import AuditEntry, LogKey  # noqa: F401


class AuditEntryQuerySet(TenantRows["AuditEntry"]):
    """Audit entries; bulk changes are refused here, and by the database's trigger."""

    missing = EntryNotFound

    def of_type(self, event_type: str) -> "AuditEntryQuerySet":
        return self.filter(event_type=event_type)

    def about(self, affected_id: object) -> "AuditEntryQuerySet":
        return self.filter(affected_id=str(affected_id))

    def update(self, **kwargs: Any) -> NoReturn:
        raise AppendOnly("Audit entries can't be changed")

    def delete(self) -> NoReturn:
        raise AppendOnly("Audit entries can't be deleted")


class LogKeyQuerySet(models.QuerySet["LogKey"]):
    def signing(self, now: datetime) -> "LogKeyQuerySet":
        """Return the keys that sign now, newest first: several while they overlap."""
        is_not_over = Q(retired_at=None) | Q(retired_at__gt=now)
        return self.filter(is_not_over, active_from__lte=now).order_by("-active_from", "-id")

    def lasting(self) -> "LogKeyQuerySet":
        return self.filter(retired_at=None)
