"""Reads of token keys and issued tokens."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import models
from django.db.models import Q

from compliance.core.identifiers import parse_id
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


class IssuedTokenQuerySet(models.QuerySet["IssuedToken"]):
    def for_tenant(self, tenant_id: UUID) -> "IssuedTokenQuerySet":
        return self.filter(tenant_id=tenant_id)

    def of_agent(self, agent_id: UUID | None) -> "IssuedTokenQuerySet":
        return self.filter(agent_id=agent_id) if agent_id else self

    def unexpired(self, now: datetime) -> "IssuedTokenQuerySet":
        return self.filter(expires_at__gt=now)

    def delete_expired(self, *, now: datetime) -> int:
        """Delete tokens that expired more than `KEPT_AFTER_EXPIRY` ago; return how many, a batch."""
        old = self.filter(expires_at__lt=now - KEPT_AFTER_EXPIRY).order_by("expires_at", "id")
        return self.filter(id__in=list(old.values_list("id", flat=True)[:SWEPT_AT_ONCE])).delete()[0]

    def descending_from(self, token_id: UUID) -> "IssuedTokenQuerySet":
        """The tokens handed on from a token, however deep, to agents of any tenant."""
        return self.filter(parent_token_id__isnull=False, ancestor_ids__contains=[token_id])

    def locked(self) -> "IssuedTokenQuerySet":
        """Lock the rows until the transaction ends; who hands them on waits for that."""
        return self.select_for_update(of=("self",), no_key=True)

    def find(self, token_id: Any) -> "IssuedToken":
        """The token with this id; raises `IssuedTokenNotFound`, also for invalid text."""
        parsed = token_id if isinstance(token_id, UUID) else parse_id(str(token_id))
        found = self.filter(id=parsed).first() if parsed else None
        if found is None:
            raise IssuedTokenNotFound()
        return found
