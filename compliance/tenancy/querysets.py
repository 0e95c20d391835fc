"""Queries of API keys."""

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import models
from django.db.models import Q

if TYPE_CHECKING:
    from compliance.tenancy.models import ApiKey  # noqa: F401


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    """API keys of the current environment."""

    def for_tenant(self, tenant_id: UUID) -> "ApiKeyQuerySet":
        return self.filter(tenant_id=tenant_id)

    def usable(self, now: datetime) -> "ApiKeyQuerySet":
        return self.filter(revoked_at=None).filter(Q(expires_at=None) | Q(expires_at__gt=now))
