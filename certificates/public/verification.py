"""Answers to anyone: how a certificate stands."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Model

from agents.models import Agent, AgentStatus
from certificates.errors import CertificateNotFound
from certificates.models import AGENT_AND_LATEST, Certificate, CertificateStatus, EndedHold, ValidityStatus
from certificates.pki.serials import environment_of, format_serial, parse_serial
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
# The columns left out are read when they are needed.
_FOUND: Final = f"""
SELECT {", ".join(f"certificate.{name}" for name in _OF_CERTIFICATE)},
    {", ".join(f"agent.{name}" for name in _OF_AGENT)}
FROM {Certificate._meta.db_table} AS certificate
JOIN {Agent._meta.db_table} AS agent
    ON (agent.tenant_id, agent.id) = (certificate.tenant_id, certificate.agent_id)
"""  # noqa: S608  (only names of columns and tables are put into the text)
_WITH_SERIALS: Final = f"{_FOUND} WHERE certificate.serial_number = ANY($1)"
_LATEST_OF_AGENTS: Final = f"""{_FOUND} WHERE certificate.id IN (
    SELECT latest.id FROM {AGENT_AND_LATEST} WHERE agent.id = ANY($1)
)"""  # noqa: S608


@dataclass(frozen=True)
class PastValidity:
    """The validity of a certificate at `time`; `revoked_since` if it was valid then and revoked later."""

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

    @property
    def is_in_force(self) -> bool:
        return (self.status, self.certificate.agent.status) == (CertificateStatus.ACTIVE, AgentStatus.ACTIVE)


def verify(*, serial: str, now: datetime) -> Verification:
    """The certificate with this serial number; raises `CertificateNotFound`, for a malformed one too."""
    number = parse_serial(serial)
    if number is None:
        raise CertificateNotFound()
    environment = environment_of(number)
    with environments.use(environment):
        rows = sql.asked(*query_of([number]))
        found = verifications(rows, environment=environment, now=now).get(number)
        if found is None:
            raise CertificateNotFound()
        return found


def query_of(serials: Iterable[int]) -> Query:
    return Query(_WITH_SERIALS, [sql.array(map(format_serial, serials))])


def query_of_agents(agent_ids: Iterable[UUID]) -> Query:
    return Query(_LATEST_OF_AGENTS, [sql.array(agent_ids)])


def latest_of_agents(agent_ids: Collection[UUID], *, now: datetime) -> dict[UUID, Verification]:
    """Map agents of the current environment to their latest certificates; without those that have none."""
    return by_agent(sql.asked(*query_of_agents(agent_ids)) if agent_ids else [], now=now)


def by_agent(rows: Iterable[Sequence[Any]], *, now: datetime) -> dict[UUID, Verification]:
    found = verifications(rows, environment=environments.current(), now=now)
    return {one.certificate.agent_id: one for one in found.values()}


def verifications(
    rows: Iterable[Sequence[Any]], *, environment: Environment, now: datetime
) -> dict[int, Verification]:
    found: dict[int, Verification] = {}
    for values in rows:
        certificate = Certificate.from_db(environment.alias, _OF_CERTIFICATE, values)
        certificate.agent = Agent.from_db(environment.alias, _OF_AGENT, values[len(_OF_CERTIFICATE) :])
        status = certificate.status_at(now)
        found[int(certificate.serial_number, 16)] = Verification(certificate, status, environment)
    return found


def validity_at(certificate: Certificate, at: datetime) -> PastValidity:
    """Return the certificate's validity at a past time, holds of then included."""
    standing = certificate.validity_at(at)
    if standing == ValidityStatus.VALID:
        held = EndedHold.objects.filter(certificate=certificate, held_at__lte=at, ended_at__gt=at)
        standing = ValidityStatus.REVOKED if held.exists() else standing
    revoked_since = standing == ValidityStatus.VALID and certificate.revoked_at is not None
    return PastValidity(at, standing, revoked_since)
