"""Answers to anyone: how a certificate stands."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Model

from agents.models import Agent
from certificates.errors import CertificateNotFound
from certificates.models import Certificate, CertificateStatus, EndedHold, ValidityStatus
from certificates.pki.serials import environment_of, format_serial, parse_serial
from certificates.public import known_tenants
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.stores import sql
from compliance.stores.async_postgres import Query


def _columns(model: type[Model], *wanted: str) -> list[str]:
    """The wanted ones in the order of the model, which is the order that `from_db()` takes them in."""
    return [field.attname for field in model._meta.concrete_fields if field.attname in wanted]


_OF_CERTIFICATE = _columns(
    Certificate,
    *("id", "tenant_id", "agent_id", "serial_number", "status", "not_before", "issued_at", "expires_at"),
    *("revoked_at", "revocation_reason", "claims"),
)
_OF_AGENT = _columns(Agent, "id", "status", "risk_score")
# By an array of serial numbers; the columns left out are read when they are needed.
_WITH_SERIALS = f"""
SELECT {", ".join(f"certificate.{name}" for name in _OF_CERTIFICATE)},
    {", ".join(f"agent.{name}" for name in _OF_AGENT)}
FROM {Certificate._meta.db_table} AS certificate
JOIN {Agent._meta.db_table} AS agent
    ON (agent.tenant_id, agent.id) = (certificate.tenant_id, certificate.agent_id)
WHERE certificate.serial_number = ANY($1)
"""  # noqa: S608  (only names of columns and tables are put into the text)
_OF_TENANTS = f"{_WITH_SERIALS}    AND certificate.tenant_id = ANY($2) AND agent.tenant_id = ANY($2)\n"
_SERIAL = _OF_CERTIFICATE.index("serial_number")


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


def verify(*, serial: str, now: datetime) -> Verification:
    """The certificate with this serial number; raises `CertificateNotFound`, for a malformed one too."""
    number = parse_serial(serial)
    if number is None:
        raise CertificateNotFound()
    environment = environment_of(number)
    with environments.use(environment):
        rows = sql.asked(*first_query({number}, environment))
        if rest := second_query({number}, rows, environment):
            rows = sql.asked(*rest)
        found = verifications(rows, environment=environment, now=now).get(number)
        if found is None:
            raise CertificateNotFound()
        return found


def first_query(serials: Collection[int], environment: Environment) -> Query:
    """The statement that finds certificates by serial number; on Citus those of tenants that are known."""
    wanted = sql.array(map(format_serial, serials))
    tenants = known_tenants.named_by(serials, environment) if settings.DATABASE_CITUS else ()
    return Query(_OF_TENANTS, [wanted, sql.array(tenants)]) if tenants else Query(_WITH_SERIALS, [wanted])


def second_query(
    serials: Collection[int], rows: Sequence[Sequence[Any]], environment: Environment
) -> Query | None:
    """The statement for what the first did not find; None where that had asked for all certificates."""
    if not (settings.DATABASE_CITUS and known_tenants.named_by(serials, environment)):
        return None
    left = {*serials} - {int(row[_SERIAL], 16) for row in rows}
    return Query(_WITH_SERIALS, [sql.array(map(format_serial, left))]) if left else None


def verifications(
    rows: Iterable[Sequence[Any]], *, environment: Environment, now: datetime
) -> dict[int, Verification]:
    """Map each serial number to what its row of the queries tells."""
    found: dict[int, Verification] = {}
    for values in rows:
        certificate = Certificate.from_db(environment.alias, _OF_CERTIFICATE, values)
        certificate.agent = Agent.from_db(environment.alias, _OF_AGENT, values[len(_OF_CERTIFICATE) :])
        status = certificate.status_at(now)
        found[int(certificate.serial_number, 16)] = Verification(certificate, status, environment)
    if settings.DATABASE_CITUS:
        known_tenants.learn(
            ((serial, one.certificate.tenant_id) for serial, one in found.items()), environment
        )
    return found


def validity_at(certificate: Certificate, at: datetime) -> PastValidity:
    """What the certificate was worth at a past time, holds of then included."""
    standing = certificate.validity_at(at)
    if standing == ValidityStatus.VALID:
        held = EndedHold.objects.filter(certificate=certificate, held_at__lte=at, ended_at__gt=at)
        standing = ValidityStatus.REVOKED if held.exists() else standing
    revoked_since = standing == ValidityStatus.VALID and certificate.revoked_at is not None
    return PastValidity(at, standing, revoked_since)
