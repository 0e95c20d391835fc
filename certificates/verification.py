"""Answers to anyone: how a certificate stands, and whether an agent signed a message."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeVar

from django.db.models import Model
from django.db.models.base import ModelState

from agents.models import Agent
from certificates import signing
from certificates.errors import CertificateNotFound, MomentNotPast
from certificates.models import Certificate, CertificateStatus, EndedHold, Standing
from certificates.serials import environment_of, format_serial, parse_serial
from compliance import environments, sql
from compliance.environments import Environment
from compliance.keys import backend_for

INVALID_SIGNATURE: Final = "invalid_signature"
CERTIFICATE_REVOKED: Final = "certificate_revoked"
CERTIFICATE_EXPIRED: Final = "certificate_expired"


Row = TypeVar("Row", bound=Model)


def _columns(model: type[Model], *wanted: str) -> list[str]:
    """The wanted ones in the order of the model, which is the order that `from_db()` takes them in."""
    return [field.attname for field in model._meta.concrete_fields if field.attname in wanted]


_OF_CERTIFICATE = _columns(
    Certificate,
    *("id", "agent_id", "serial_number", "status", "not_before", "issued_at", "expires_at"),
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
"""Asked with `array_of()`; `verifications()` takes its rows. The ORM spends three times as long on it.

The rows leave out what verification doesn't show, which is read when it is asked for.
"""


@dataclass(frozen=True)
class PastStanding:
    """What a certificate was worth at `time`; `revoked_since` if it was valid then and revoked later."""

    time: datetime
    standing: Standing
    revoked_since: bool

    @property
    def valid(self) -> bool:
        return self.standing == Standing.VALID


@dataclass(frozen=True)
class Verification:
    """A certificate of any tenant, its state now, its environment, and its standing `at` a time if asked."""

    certificate: Certificate
    status: CertificateStatus
    environment: Environment
    at: PastStanding | None = None


@dataclass(frozen=True)
class MessageSignature:
    """A signature by an agent's managed key; `signature` is base64, `payload_hash` as in `signing`."""

    signature: str
    algorithm: str
    certificate_serial: str
    payload_hash: str


@dataclass(frozen=True)
class MessageVerification:
    """Whether an agent signed this payload with a certificate that counts now; `reason` tells why not."""

    valid: bool
    reason: str | None
    certificate: Certificate
    status: CertificateStatus
    payload_hash: str
    algorithm: str = signing.ALGORITHM.value


def verify(*, serial: str, now: datetime, at: datetime | None = None) -> Verification:
    """The certificate with this serial number, in the environment that the number tells.

    Raises `CertificateNotFound`, for nonsense too, and `MomentNotPast`: nobody knows what will be revoked.
    """
    if at is not None and at > now:
        raise MomentNotPast()
    number = parse_serial(serial)
    if number is None:
        raise CertificateNotFound()
    with environments.use(environment_of(number)):
        found = verify_all([number], now=now).get(number)
        if found is None:
            raise CertificateNotFound()
        return found if at is None else replace(found, at=_standing(found.certificate, at))


def verify_all(numbers: Collection[int], *, now: datetime) -> dict[int, Verification]:
    """What is known of serials of the current environment, in one statement; unknown ones are left out."""
    rows = sql.asked(WITH_SERIALS, [array_of(numbers).decode()])
    return verifications(rows, environment=environments.current(), now=now)


def array_of(numbers: Iterable[int]) -> bytes:
    """Serials as an array written out."""
    return sql.array(map(format_serial, numbers)).encode()


def verifications(
    rows: Iterable[Sequence[Any]], *, environment: Environment, now: datetime
) -> dict[int, Verification]:
    """What rows say of the serials that they are of."""
    certificates = [_certificate(environment.alias, values) for values in rows]
    return {
        int(one.serial_number, 16): Verification(one, one.status_at(now), environment) for one in certificates
    }


def _certificate(database: str, values: Sequence[Any]) -> Certificate:
    """The certificate with its agent."""
    certificate = _of_row(Certificate, database, _OF_CERTIFICATE, values)
    agent = _of_row(Agent, database, _OF_AGENT, values[len(_OF_CERTIFICATE) :])
    certificate._state.fields_cache["agent"] = agent
    return certificate


def _of_row(model: type[Row], database: str, names: Sequence[str], values: Sequence[Any]) -> Row:
    """As `Model.from_db()` makes it, much faster; what is not named is read when it is asked for."""
    made = model.__new__(model)
    made.__dict__.update(zip(names, values, strict=False))
    made._state = state = ModelState()
    state.adding, state.db = False, database
    return made


def _standing(certificate: Certificate, at: datetime) -> PastStanding:
    standing = certificate.standing_at(at)
    if standing == Standing.VALID:
        was_held = EndedHold.objects.filter(certificate=certificate).covering(at).exists()
        standing = Standing.REVOKED if was_held else standing
    revoked_since = standing == Standing.VALID and certificate.revoked_at is not None
    return PastStanding(at, standing, revoked_since)


def sign_message(*, certificate: Certificate, payload: Any) -> MessageSignature:
    """Sign a JSON value with the agent's key; `Invalid` for what has no canonical form, 503 errors."""
    message = signing.canonical(payload)
    backend = backend_for(environments.current())
    signature = backend.sign(certificate.kms_key_arn, message, signing.ALGORITHM)
    return MessageSignature(
        signature=signing.encode_signature(signature),
        algorithm=signing.ALGORITHM.value,
        certificate_serial=certificate.serial_number,
        payload_hash=signing.payload_hash(message),
    )


def verify_message(*, serial: str, payload: Any, signature: str, now: datetime) -> MessageVerification:
    """Check a signed message; a revoked or expired certificate makes it invalid, whoever signed.

    The signature carries no time of its own, so a message can't be shown to be older than the revocation.
    Raises `CertificateNotFound` and `Invalid`.
    """
    message = signing.canonical(payload)
    found = verify(serial=serial, now=now)
    raw = signing.decode_signature(signature)
    is_authentic = raw is not None and signing.verifies(found.certificate.certificate_pem, message, raw)
    reason = _reason(is_authentic, found.status)
    return MessageVerification(
        reason is None, reason, found.certificate, found.status, signing.payload_hash(message)
    )


def _reason(is_authentic: bool, status: CertificateStatus) -> str | None:
    if not is_authentic:
        return INVALID_SIGNATURE
    if status == CertificateStatus.REVOKED:
        return CERTIFICATE_REVOKED
    return CERTIFICATE_EXPIRED if status == CertificateStatus.EXPIRED else None
