"""Reads of CAs, certificates, holds and revocation lists."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from cryptography.x509 import ReasonFlags
from django.db import models
from django.db.models import Case, F, Q, Value, When

from certificates import errors
from certificates.pki import MAX_LIFETIME
from certificates.pki.serials import format_serial, parse_serial
from compliance.core.errors import Unavailable
from compliance.stores.rows import TenantRows

if TYPE_CHECKING:
    from agents.models import Agent
    from certificates.models import Certificate, CertificateAuthority, RevocationList

LISTS_AFTER_RETIREMENT: Final = MAX_LIFETIME + timedelta(days=14)
"""By then all that a rotated CA issued has expired and stayed on its lists for a period (RFC 5280 §3.3)."""

HOLD: Final = ReasonFlags.certificate_hold.value


def ends_within(days: int, now: datetime) -> Q:
    """Match active certificates without a successor that end within so many days."""
    return Q(status="active", superseded_at=None, expires_at__range=(now, now + timedelta(days=days)))


class AuthorityQuerySet(models.QuerySet["CertificateAuthority"]):
    def in_service(self) -> "AuthorityQuerySet":
        """CAs that issue; a rotated CA only signs its revocation lists."""
        return self.filter(retired_at=None)

    def publishing(self, now: datetime) -> "AuthorityQuerySet":
        """CAs that sign revocation lists: active or retiring by `state_at(now)`."""
        is_needed = Q(retired_at=None) | Q(role="root")
        return self.filter(is_needed | Q(retired_at__gte=now - LISTS_AFTER_RETIREMENT), not_after__gte=now)

    def locked(self) -> "AuthorityQuerySet":
        """Lock the rows until the transaction ends, without blocking foreign keys to them."""
        return self.select_for_update(of=("self",), no_key=True)

    def issuing(self) -> "CertificateAuthority":
        """The CA that issues now; raises `AuthorityMissing`."""
        found = self.in_service().filter(role="issuing").first()
        if found is None:
            raise errors.AuthorityMissing()
        return found

    def issuing_at(self, now: datetime) -> "CertificateAuthority":
        """The CA that issues, if still valid; raises `AuthorityMissing`, `Unavailable`."""
        found = self.issuing()
        if now >= found.not_after:
            raise Unavailable("The issuing CA has expired and must be rotated")
        return found

    def with_serial(self, serial: int) -> "CertificateAuthority":
        """The CA whose own certificate has this serial number; raises `AuthorityNotFound`."""
        found = self.filter(serial_number=format_serial(serial)).first()
        if found is None:
            raise errors.AuthorityNotFound()
        return found


class CertificateQuerySet(TenantRows["Certificate"]):
    missing = errors.CertificateNotFound

    def of_agent(self, agent_id: UUID | None) -> "CertificateQuerySet":
        return self.filter(agent_id=agent_id) if agent_id else self

    def active(self, now: datetime) -> "CertificateQuerySet":
        """Neither revoked nor expired, even if not marked as expired yet."""
        return self.filter(status="active", expires_at__gte=now)

    def revocable(self, now: datetime) -> "CertificateQuerySet":
        """Active or on hold: certificates that can still be revoked for good."""
        return self.filter(
            Q(status="active") | Q(status="revoked", revocation_code=HOLD), expires_at__gte=now
        )

    def with_status(self, status: str | None, now: datetime) -> "CertificateQuerySet":
        if status == "active":
            return self.active(now)
        if status == "expired":
            return self.filter(Q(status="expired") | Q(status="active", expires_at__lt=now))
        return self.filter(status=status) if status else self

    def wider_than_profile(self) -> "CertificateQuerySet":
        """Those without a successor that permit an action which the profile of their agent does not."""
        stated = "agent__metadata__permitted_actions"
        is_stated = Q(**{f"{stated}__isnull": False}) & ~Q(**{stated: None})
        within = Q(claims__permitted_actions__contained_by=F(stated))
        # The older key gives an empty scope.
        is_empty = ~is_stated & Q(agent__metadata__has_key="scopes")
        wider = (is_stated & ~within) | (is_empty & ~Q(claims__permitted_actions=[]))
        return self.filter(wider, superseded_at=None)

    def latest_state(self, agent: Any, now: datetime) -> models.QuerySet[Any, Any]:
        """Return what the console calls the state of the agent's latest certificate, as one value."""
        state = Case(
            When(status="revoked", revocation_code=HOLD, expires_at__gte=now, then=Value("on hold")),
            When(status="revoked", then=Value("revoked")),
            When(Q(status="expired") | Q(expires_at__lt=now), then=Value("expired")),
            default=Value("active"),
        )
        latest = self.filter(agent=agent).order_by("-issued_at", "-id")
        return latest.annotate(console_state=state).values("console_state")[:1]

    def latest_of(self, agent: "Agent | UUID") -> "Certificate | None":
        return self.filter(agent=agent).order_by("-issued_at", "-id").first()

    def with_serial_text(self, text: str) -> "Certificate":
        """The certificate with this serial number; raises `CertificateNotFound`, also for invalid text."""
        serial = parse_serial(text)
        found = serial and self.filter(serial_number=format_serial(serial)).first()
        if not found:
            raise errors.CertificateNotFound()
        return found


class RevocationListQuerySet(models.QuerySet["RevocationList"]):
    def newest_of(self, authority: "CertificateAuthority", scope: str = "full") -> "RevocationList | None":
        return self.filter(authority=authority, scope=scope).order_by("-number").first()

    def latest_of(self, authority: "CertificateAuthority", scope: str = "full") -> "RevocationList":
        found = self.newest_of(authority, scope)
        if found is None:
            raise errors.ListNotGenerated()
        return found
