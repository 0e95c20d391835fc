"""Reads of token keys."""

from datetime import datetime
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q

from delegation.lifecycle import PUBLISHED_AFTER_RETIREMENT, KeyStatus

if TYPE_CHECKING:
    from delegation.models import TokenKey  # noqa: F401


class TokenKeyQuerySet(models.QuerySet["TokenKey"]):
    def with_status(self, *statuses: KeyStatus) -> "TokenKeyQuerySet":
        return self.filter(status__in=statuses)

    def published(self, now: datetime) -> "TokenKeyQuerySet":
        """The keys in the JWKS: before they sign, while they sign, and for a day and an hour after."""
        recently_retired = Q(status=KeyStatus.RETIRED, retired_at__gt=now - PUBLISHED_AFTER_RETIREMENT)
        in_use = Q(status__in=[KeyStatus.PUBLISHED, KeyStatus.ACTIVE])
        return self.filter(in_use | recently_retired).order_by("-published_at", "-id")
