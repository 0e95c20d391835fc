"""Reads of token keys."""

from datetime import datetime
from typing import TYPE_CHECKING

from django.db import models

from delegation.lifecycle import DESTROY_AFTER, PUBLISHED_AFTER_RETIREMENT, KeyStatus

if TYPE_CHECKING:
    from delegation.models import TokenKey  # noqa: F401


class TokenKeyQuerySet(models.QuerySet["TokenKey"]):
    """Token keys of the current environment."""

    def with_status(self, *statuses: KeyStatus) -> "TokenKeyQuerySet":
        return self.filter(status__in=statuses)

    def published(self, now: datetime) -> "TokenKeyQuerySet":
        """What the JWKS holds: keys before they sign, while they do, and for a day and an hour after."""
        recently_retired = models.Q(status=KeyStatus.RETIRED, retired_at__gt=now - PUBLISHED_AFTER_RETIREMENT)
        in_use = models.Q(status__in=[KeyStatus.PUBLISHED, KeyStatus.ACTIVE])
        return self.filter(in_use | recently_retired).order_by("-published_at", "-id")

    def trusted(self) -> "TokenKeyQuerySet":
        """Keys whose signatures count; an old token under a retired key is authentic, and expired."""
        return self.exclude(status=KeyStatus.WITHDRAWN)

    def to_destroy(self, now: datetime) -> "TokenKeyQuerySet":
        """Keys that will not sign again and whose private halves are still in the token."""
        ended = self.with_status(KeyStatus.RETIRED, KeyStatus.WITHDRAWN)
        return ended.filter(retired_at__lt=now - DESTROY_AFTER, destroyed_at=None).order_by(
            "retired_at", "id"
        )
