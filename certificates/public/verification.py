"""Answers to anyone: how a certificate stands, and whether an agent signed a message."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Model

from agents.models import Agent
from certificates.errors import CertificateNotFound
from certificates.models import Certificate, CertificateStatus, EndedHold, ValidityStatus
from certificates.pki import signing
from certificates.pki.serials import environment_of, format_serial, parse_serial
from compliance.core import environments
from compliance.core.encodings import b64_encode
from compliance.core.environments import Environment
from compliance.keys import backend_for
from compliance.stores import sql

INVALID_SIGNATURE: Final = "invalid_signature"
REASON_OF_STATUS: Final = {
    CertificateStatus.REVOKED: "certificate_revoked",
    CertificateStatus.EXPIRED: "certificate_expired",
}
REASONS: Final = [INVALID_SIGNATURE, *REASON_OF_STATUS.values()]


def _columns(model: type[Model], *wanted: str) -> list[str]:
    """The wanted ones in the order of the model, which is the order that `from_db()` takes them in."""
    return [field.attname for field in model._meta.concrete_fields if field.attname in wanted]


_OF_CERTIFICATE = _columns(
    Certificate,
    *("id", "tenant_id", "agent_id", "serial_number", "status", "not_before", "issued_at", "expires_at"),
    *("revoked_at", "revocation_reason", "claims"),
)
_OF_AGENT = _columns(Agent, "id", "status", "risk_score")
WITH_SERIALS = f"""
SELECT {", ".join(f"certificate.{name}" for name in _OF_CERTIFICATE)},
    {", ".join(f"agent.{name}" for name in _OF_AGENT)}
FROM {Certificate._meta.db_table} AS certificate
JOIN {Agent._meta.db_table} AS agent ON agent.id = certificate.agent_id
WHERE certificate.serial_number = ANY($1)
"""  # noqa: S608  (only names of columns and tables are put into the text)
"""Find certificates by an array of serial numbers; the columns left out are read when they are needed."""


@dataclass(frozen=True)
class PastValidity:
    """What a certificate was worth at `time`; `revoked_since` if it was valid then and revoked later."""

    time: datetime
    standing: ValidityStatus
    revoked_since: bool

    @property
    def valid(self) -> bool:
        return self.standing == ValidityStatus.VALID


@dataclass(frozen=True)
class Verification:
    """A certificate of any tenant, its state now, its environment, and its standing `at` a time if asked."""

    certificate: Certificate
    status: CertificateStatus
    environment: Environment
    at: PastValidity | None = None


@dataclass(frozen=True)
class MessageSignature:
    """A signature by an agent's managed key; `signature` is base64, `payload_hash` as in `signing`."""

    signature: str
    algorithm: str
    certificate_serial: str
    payload_hash: str


@dataclass(frozen=True)
class MessageVerification:
    """Whether an agent signed this payload with a certificate valid now; `reason` tells why not."""

    valid: bool
    reason: str | None
    certificate: Certificate
    status: CertificateStatus
    payload_hash: str
    algorithm: str = signing.ALGORITHM.value


def verify(*, serial: str, now: datetime) -> Verification:
    """The certificate with this serial number; raises `CertificateNotFound`, for a malformed one too."""
    number = parse_serial(serial)
    if number is None:
        raise CertificateNotFound()
    environment = environment_of(number)
    with environments.use(environment):
        rows = sql.asked(WITH_SERIALS, [sql.array([format_serial(number)])])
        found = verifications(rows, environment=environment, now=now).get(number)
        if found is None:
            raise CertificateNotFound()
        return found


def verifications(
    rows: Iterable[Sequence[Any]], *, environment: Environment, now: datetime
) -> dict[int, Verification]:
    """Map each serial number to what its row of `WITH_SERIALS` tells."""
    found: dict[int, Verification] = {}
    for values in rows:
        certificate = Certificate.from_db(environment.alias, _OF_CERTIFICATE, values)
        certificate.agent = Agent.from_db(environment.alias, _OF_AGENT, values[len(_OF_CERTIFICATE) :])
        status = certificate.status_at(now)
        found[int(certificate.serial_number, 16)] = Verification(certificate, status, environment)
    return found


def validity_at(certificate: Certificate, at: datetime) -> PastValidity:
    """What the certificate was worth at a past time, holds of then included."""
    standing = certificate.validity_at(at)
    if standing == ValidityStatus.VALID:
        held = EndedHold.objects.filter(certificate=certificate, held_at__lte=at, ended_at__gt=at)
        standing = ValidityStatus.REVOKED if held.exists() else standing
    revoked_since = standing == ValidityStatus.VALID and certificate.revoked_at is not None
    return PastValidity(at, standing, revoked_since)


def sign_message(*, certificate: Certificate, payload: Any) -> MessageSignature:
    """Sign a JSON value with the agent's key; `Invalid` for what has no canonical form, 503 errors."""
    message = signing.canonical(payload)
    backend = backend_for(environments.current())
    signature = backend.sign(certificate.kms_key_arn, message, signing.ALGORITHM)
    return MessageSignature(
        signature=b64_encode(signature),
        algorithm=signing.ALGORITHM.value,
        certificate_serial=certificate.serial_number,
        payload_hash=signing.payload_hash(message),
    )


def verify_message(*, serial: str, payload: Any, signature: str, now: datetime) -> MessageVerification:
    """Check a signed message; one whose certificate is revoked or expired now is invalid.

    The signature carries no time, so a message can't be shown to be older than the revocation.
    """
    message = signing.canonical(payload)
    found = verify(serial=serial, now=now)
    is_authentic = signing.verifies(found.certificate.certificate_pem, message, signature)
    reason = REASON_OF_STATUS.get(found.status) if is_authentic else INVALID_SIGNATURE
    return MessageVerification(
        reason is None, reason, found.certificate, found.status, signing.payload_hash(message)
    )
