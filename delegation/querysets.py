"""Reads of token keys, issued tokens and credentials."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import models
from django.db.models import Q

from compliance.stores.rows import Row, TenantRows
from delegation.errors import IssuedTokenNotFound
from delegation.lifecycle import PUBLISHED_AFTER_RETIREMENT, KeyStatus

KEPT_AFTER_EXPIRY = timedelta(days=7)
SWEPT_AT_ONCE = 1_000

if TYPE_CHECKING:
    from delegation.models import IssuedToken, TokenKey  # noqa: F401


class TokenKeyQuerySet(models.QuerySet["TokenKey"]):
    def with_status(self, *statuses: KeyStatus) -> "TokenKeyQuerySet":
        return self.filter(status__in=statuses)

    def published(self, now: datetime) -> "TokenKeyQuerySet":
        """The keys in the JWKS: before they sign, while they sign, and for a day and an hour after."""
        recently_retired = Q(status=KeyStatus.RETIRED, retired_at__gt=now - PUBLISHED_AFTER_RETIREMENT)
        in_use = Q(status__in=[KeyStatus.PUBLISHED, KeyStatus.ACTIVE])
        return self.filter(in_use | recently_retired).order_by("-published_at", "-id")


class ExpiringQuerySet(TenantRows[Row]):
    """Rows with an end, deleted some time after it."""

    def delete_expired(self, *, now: datetime) -> int:
        """Delete rows that expired more than `KEPT_AFTER_EXPIRY` ago; return how many, a batch."""
        old = self.filter(expires_at__lt=now - KEPT_AFTER_EXPIRY).order_by("expires_at", "id")
        return self.filter(id__in=list(old.values_list("id", flat=True)[:SWEPT_AT_ONCE])).delete()[0]


class IssuedTokenQuerySet(ExpiringQuerySet["IssuedToken"]):
    missing = IssuedTokenNotFound

    def of_agent(self, agent_id: UUID | None) -> "IssuedTokenQuerySet":
        return self.filter(agent_id=agent_id) if agent_id else self

    def unexpired(self, now: datetime) -> "IssuedTokenQuerySet":
        return self.filter(expires_at__gt=now)
