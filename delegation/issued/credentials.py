"""Verifiable credentials of agents (W3C VC Data Model 2.0), signed as JWTs (VC-JOSE-COSE §3.1)."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from agents.models import Agent, AgentStatus
from auditlog.actors.requests import record_taken
from auditlog.vocabulary import Actor, AuditAction
from certificates.models import Certificate, CertificateStatus
from compliance.core import environments
from compliance.core.identifiers import new_id
from delegation import errors
from delegation.issued import status_lists
from delegation.jose import jws
from delegation.lifecycle import MAX_TTL
from delegation.models import IssuedCredential
from delegation.token_keys import keyring, keys

TYPE: Final = "vc+jwt"
DATE_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"
CONTEXT: Final = "https://www.w3.org/ns/credentials/v2"
STANDING: Final = (CertificateStatus.ACTIVE, AgentStatus.ACTIVE)
_STATED: Final = ("operator", "model", "model_version", "model_hash", "permitted_actions")
_TERMS: Final = (
    *("AgentCredential", "Agent", "TokenStatusListEntry", "status", "status_list", "idx", "uri"),
    *(*_STATED, "certificate_serial", "jti", "env"),
)
"""The members that the W3C's context, which protects its own, does not define."""


@dataclass(frozen=True)
class AgentCredential:
    """A signed credential; the keys that verify it are published until `valid_until`."""

    credential: str
    valid_until: datetime


def issue_credential(*, tenant_id: UUID, agent_id: Any, actor: Actor, now: datetime) -> AgentCredential:
    """Sign what an agent's certificate in force says of it, for a day at most, and audit it.

    Raises: AgentNotFound, AgentDoesNotStand, and 503 errors.
    """
    agent = Agent.objects.for_tenant(tenant_id).find(agent_id)
    certificate = Certificate.objects.for_tenant(tenant_id).latest_of(agent)
    if certificate is None or (certificate.status_at(now), agent.status) != STANDING:
        raise errors.AgentDoesNotStand()
    new: dict[str, Any] = {"agent": agent, "issued_at": now, "expires_at": certificate.expires_at}
    new["status_index"] = status_lists.next_index  # called only for a new row
    place, _ = IssuedCredential.objects.get_or_create(
        certificate_serial=certificate.serial_number, tenant_id=tenant_id, defaults=new
    )
    start = now.replace(microsecond=0)
    end = min(start + MAX_TTL, certificate.expires_at.replace(microsecond=0))
    key = keys.signing_key()
    claims = _claims(agent, certificate, place, start, end)
    text = jws.sign(claims, kid=key.kid, key=keys.private_half(key), typ=TYPE, cty="vc")
    keyring.add(key)
    record_taken(
        actor=actor,
        action=AuditAction.CREDENTIAL_ISSUED,
        of=agent,
        description=f"Credential of agent {agent.name} issued",
        credential_id=claims["id"],
        certificate_serial=certificate.serial_number,
        key_id=key.kid,
        expires_at=end.isoformat(),
    )
    return AgentCredential(text, end)


def _claims(
    agent: Agent, certificate: Certificate, place: IssuedCredential, start: datetime, end: datetime
) -> dict[str, Any]:
    """Return the credential, with the JWT claims that mean the same (VC-JOSE-COSE §3.1.3)."""
    stated, identifier = certificate.claims, f"urn:uuid:{new_id()}"
    namespace = f"urn:{settings.SERVICE_NAME}:params:credential:"
    entry = status_lists.status_at(place.status_index).status_list
    status = {"status_list": {"idx": entry.idx, "uri": entry.uri}}
    return {
        "@context": [CONTEXT, {term: f"{namespace}{term}" for term in _TERMS}],
        "id": identifier,
        "type": ["VerifiableCredential", "AgentCredential"],
        "issuer": settings.TOKEN_ISSUER,
        "validFrom": f"{start.astimezone(UTC):{DATE_TIME}}",
        "validUntil": f"{end.astimezone(UTC):{DATE_TIME}}",
        "credentialSubject": {
            "id": agent.did,
            "type": "Agent",
            **{name: stated[name] for name in _STATED if stated.get(name) is not None},
            "certificate_serial": certificate.serial_number,
        },
        "credentialStatus": {"id": f"{entry.uri}#{entry.idx}", "type": "TokenStatusListEntry", **status},
        "status": status,
        "iss": settings.TOKEN_ISSUER,
        "sub": agent.did,
        "iat": int(start.timestamp()),
        "exp": int(end.timestamp()),
        "jti": identifier,
        "env": environments.current().value,
    }
