"""Queries for trusted issuers."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import models

from compliance.core.identifiers import parse_id
from delegation.issuers.errors import TrustedIssuerNotFound

if TYPE_CHECKING:
    from delegation.issuers.models import TrustedIssuer


class TrustedIssuerQuerySet(models.QuerySet["TrustedIssuer"]):
    def for_tenant(self, tenant_id: UUID) -> "TrustedIssuerQuerySet":
        return self.filter(tenant_id=tenant_id)

    def active(self) -> "TrustedIssuerQuerySet":
        return self.filter(active=True)

    def newest_first(self) -> "TrustedIssuerQuerySet":
        return self.order_by("-created_at", "-id")

    def locked(self) -> "TrustedIssuerQuerySet":
        return self.select_for_update(of=("self",), no_key=True)

    def find(self, issuer_id: Any) -> "TrustedIssuer":
        """The issuer with an id from a client. Raises: TrustedIssuerNotFound, also if malformed."""
        row = self.filter(id=parse_id(str(issuer_id))).first()
        if row is None:
            raise TrustedIssuerNotFound()
        return row
