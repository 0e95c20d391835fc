"""Reads of authorities, certificates, pooled keys and revocation lists."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from cryptography.x509 import ReasonFlags
from django.db import models

from certificates.errors import (
    AuthorityExpired,
    AuthorityMissing,
    AuthorityNotFound,
    CertificateNotFound,
    ListNotGenerated,
)
from certificates.lint import MAX_LIFETIME
from certificates.serials import format_serial, parse_serial
from compliance.identifiers import parse_id

if TYPE_CHECKING:
    from agents.models import Agent
    from certificates.models import (
        Certificate,
        CertificateAuthority,
        EndedHold,  # noqa: F401  (a string below names it)
        RevocationList,
    )

LISTS_AFTER_RETIREMENT: Final = MAX_LIFETIME + timedelta(days=14)
"""By then all that a rotated CA issued has expired, and has stayed on its lists for a period (RFC 5280 §3.3).
"""

HOLD: Final = ReasonFlags.certificate_hold.value


class AuthorityQuerySet(models.QuerySet["CertificateAuthority"]):
    """CAs of the current environment."""

    def in_service(self) -> "AuthorityQuerySet":
        """Those that issue; a rotated CA only still signs its revocation lists."""
        return self.filter(retired_at=None)

    def publishing(self, now: datetime) -> "AuthorityQuerySet":
        """Those that sign revocation lists: active or retiring by `state_at(now)`."""
        is_needed = models.Q(retired_at=None) | models.Q(role="root")
        return self.filter(
            is_needed | models.Q(retired_at__gte=now - LISTS_AFTER_RETIREMENT), not_after__gte=now
        )

    def locked(self) -> "AuthorityQuerySet":
        """The rows locked until the transaction ends; foreign keys to them stay possible."""
        return self.select_for_update(of=("self",), no_key=True)

    def issuing(self) -> "CertificateAuthority":
        """The CA that issues now; raises `AuthorityMissing`."""
        found = self.in_service().filter(role="issuing").first()
        if found is None:
            raise AuthorityMissing()
        return found

    def issuing_at(self, now: datetime) -> "CertificateAuthority":
        """The CA that issues, if it still counts; raises `AuthorityMissing` and `AuthorityExpired`."""
        return issuing_among([self.issuing()], now)

    def with_serial(self, serial: int | None) -> "CertificateAuthority":
        """The CA whose own certificate has this serial number; raises `AuthorityNotFound`."""
        found = self.filter(serial_number=format_serial(serial)).first() if serial else None
        if found is None:
            raise AuthorityNotFound()
        return found


def issuing_among(found: list["CertificateAuthority"], now: datetime) -> "CertificateAuthority":
    """The CA in service that was read, if it is there and counts; raises as `issuing_at`."""
    if not found:
        raise AuthorityMissing()
    if now >= found[0].not_after:
        raise AuthorityExpired()
    return found[0]


class CertificateQuerySet(models.QuerySet["Certificate"]):
    """Certificates of the current environment."""

    def for_tenant(self, tenant_id: UUID) -> "CertificateQuerySet":
        return self.filter(tenant_id=tenant_id)

    def of_agent(self, agent_id: UUID | None) -> "CertificateQuerySet":
        return self.filter(agent_id=agent_id) if agent_id else self

    def active(self, now: datetime) -> "CertificateQuerySet":
        """Neither revoked nor past their end, whether the sweep has seen it or not."""
        return self.filter(status="active", expires_at__gte=now)

    def revocable(self, now: datetime) -> "CertificateQuerySet":
        """Active or on hold: those that can still be revoked for good."""
        return self.filter(
            models.Q(status="active") | models.Q(status="revoked", revocation_code=HOLD), expires_at__gte=now
        )

    def overdue(self, now: datetime) -> "CertificateQuerySet":
        """Past their end, and not yet marked so."""
        return self.filter(status="active", expires_at__lt=now)

    def with_status(self, status: str | None, now: datetime) -> "CertificateQuerySet":
        """Those that `status_at(now)` calls so."""
        if status == "active":
            return self.active(now)
        if status == "expired":
            return self.filter(models.Q(status="expired") | models.Q(status="active", expires_at__lt=now))
        return self.filter(status=status) if status else self

    def revoked(self) -> "CertificateQuerySet":
        return self.filter(status="revoked")

    def listable(self, now: datetime, period: timedelta) -> "CertificateQuerySet":
        """Revoked, and not expired for longer than one period of the list (RFC 5280 §3.3)."""
        return self.revoked().filter(expires_at__gte=now - period)

    def unpublished(self) -> "CertificateQuerySet":
        """On no list yet."""
        return self.filter(first_crl_number=None)

    def locked(self) -> "CertificateQuerySet":
        return self.select_for_update(of=("self",), no_key=True)

    def latest_of(self, agent: "Agent") -> "Certificate | None":
        """The agent's newest certificate, whatever its state."""
        return self.filter(agent=agent).order_by("-issued_at", "-id").first()

    def find(self, certificate_id: Any) -> "Certificate":
        """The certificate with the id that a client wrote; raises `CertificateNotFound`, for nonsense too."""
        parsed = certificate_id if isinstance(certificate_id, UUID) else parse_id(certificate_id)
        found = self.filter(id=parsed).first() if parsed else None
        if found is None:
            raise CertificateNotFound()
        return found

    def with_serial(self, serial: int) -> "Certificate":
        """The certificate with this serial number, with its agent; raises `CertificateNotFound`."""
        found = self.select_related("agent").filter(serial_number=format_serial(serial)).first()
        if found is None:
            raise CertificateNotFound()
        return found

    def with_serial_text(self, text: str) -> "Certificate":
        """As `with_serial`, of a number that a person wrote; nonsense is `CertificateNotFound` too."""
        serial = parse_serial(text)
        if serial is None:
            raise CertificateNotFound()
        return self.with_serial(serial)


class EndedHoldQuerySet(models.QuerySet["EndedHold"]):
    """Holds that have ended."""

    def covering(self, moment: datetime) -> "EndedHoldQuerySet":
        """Those during which `moment` lies."""
        return self.filter(held_at__lte=moment, ended_at__gt=moment)

    def unpublished(self) -> "EndedHoldQuerySet":
        """Those that lists told of and whose end no list has told yet."""
        return self.filter(hold_crl_number__isnull=False, end_crl_number=None)


class RevocationListQuerySet(models.QuerySet["RevocationList"]):
    """Published lists."""

    def latest_of(self, authority: "CertificateAuthority", scope: str = "full") -> "RevocationList":
        """The list of a scope that counts now; raises `ListNotGenerated`."""
        found = self.filter(authority=authority, scope=scope).order_by("-number").first()
        if found is None:
            raise ListNotGenerated()
        return found
