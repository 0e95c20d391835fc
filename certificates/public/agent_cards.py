"""Signed A2A cards (1.0 §4.4.1): an agent's key signs a card once, until what it says changes.

No member is empty: A2A leaves empty members out of what is signed, and implementations differ on which.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import rfc8785
from django.conf import settings

from agents.errors import AgentNotFound
from agents.models import Agent, AgentDid, AgentStatus
from certificates.errors import CardNotFound
from certificates.models import Certificate, SignedCard
from certificates.pki import jws as jose
from certificates.public.messages import key_id, sign_octets
from compliance.core import environments
from compliance.core.encodings import b64url_encode
from compliance.core.errors import Unavailable
from compliance.core.shares import AllTaken, SharedSlots

EXTENSION: Final = "urn:uuid:0d1c5a52-6f5e-4d5f-9b0e-3c6f6f0c2a71"
"""Identifies the extension that names the agent's DID and certificate (docs/agent-cards.md)."""
PROTOCOL_VERSION: Final = "1.0"
UNVERSIONED: Final = "unversioned"
DEFAULT_MODES: Final = ["application/json"]
TOKEN_SCHEMES: Final[dict[str, dict[str, str]]] = {
    "bearer": {
        "scheme": "Bearer",
        "bearerFormat": "delegation+jwt",
        "description": "A delegation token of the service that certified this agent.",
    },
    "dpop": {"scheme": "DPoP", "description": "A delegation token bound to the caller's key (RFC 9449)."},
}
LONGEST_WAIT_SECONDS: Final = 5.0
_signing: Final = SharedSlots(1)
"""Anyone may ask for cards: a process signs one at a time, so that they can't fill the HSM."""


def content_of(agent: Agent, certificate: Certificate, *, base_url: str) -> dict[str, Any]:
    wishes, claims = agent.agent_card or {}, certificate.claims
    identity = {
        "uri": EXTENSION,
        "description": "The agent's decentralized identifier and its certificate in force.",
        "params": {
            "did": claims["did"],
            "certificate_serial": certificate.serial_number,
            "verify_url": f"{base_url}/v1/verify/{certificate.serial_number}",
        },
    }
    capabilities: dict[str, Any] = {"extensions": [identity]}
    if "streaming" in wishes:
        capabilities["streaming"] = wishes["streaming"]
    card: dict[str, Any] = {
        "name": agent.name,
        "description": agent.description or agent.name,
        "version": claims["model_version"] or UNVERSIONED,
        "supportedInterfaces": [
            {
                "url": wishes["url"],
                "protocolBinding": wishes.get("protocol_binding", "JSONRPC"),
                "protocolVersion": PROTOCOL_VERSION,
            }
        ],
        "capabilities": capabilities,
        "defaultInputModes": wishes.get("input_modes", DEFAULT_MODES),
        "defaultOutputModes": wishes.get("output_modes", DEFAULT_MODES),
        "skills": [
            {
                "id": action,
                "name": action,
                "description": f"The action {action}, which the agent's certificate permits.",
                "tags": ["permitted-action"],
            }
            for action in dict.fromkeys(claims["permitted_actions"])
        ],
    }
    if schemes := wishes.get("token_schemes"):
        card["securitySchemes"] = {
            name: {"httpAuthSecurityScheme": TOKEN_SCHEMES[name]} for name in dict.fromkeys(schemes)
        }
    if "provider_url" in wishes:
        card["provider"] = {"organization": claims["operator"], "url": wishes["provider_url"]}
    if "documentation_url" in wishes:
        card["documentationUrl"] = wishes["documentation_url"]
    return card


@dataclass(frozen=True)
class PublishedCard:
    """A signed card, and the digest of what was signed, which changes with each of its changes."""

    document: dict[str, Any]
    digest: str


def published(did: AgentDid, *, now: datetime) -> PublishedCard:
    """The card of an active agent that publishes one, for anyone.

    Raises `CardNotFound` for every other, and the HSM's 503 errors where the card must be signed.
    """
    with environments.use(did.environment):
        agent, certificate = _publisher(did, now)
        content = content_of(agent, certificate, base_url=settings.BASE_URL)
        protected = jose.card_header(key_id(certificate))
        octets = jose.card_input(protected, rfc8785.dumps(content))
        digest = hashlib.sha256(octets).hexdigest()
        signature = _stored(agent, digest) or _signed(agent, certificate, octets, digest, now)
    signatures = [{"protected": protected, "signature": signature}]
    return PublishedCard({**content, "signatures": signatures}, digest)


def _publisher(did: AgentDid, now: datetime) -> tuple[Agent, Certificate]:
    try:
        agent = Agent.objects.find(did.agent_id)
    except AgentNotFound as error:
        raise CardNotFound() from error
    if agent.agent_card is None or agent.status != AgentStatus.ACTIVE:
        raise CardNotFound()
    certificate = Certificate.objects.of_agent(agent.id).active(now).first()
    if certificate is None or not certificate.claims["permitted_actions"]:
        raise CardNotFound()
    return agent, certificate


def _stored(agent: Agent, digest: str) -> str | None:
    return SignedCard.objects.filter(agent=agent, digest=digest).values_list("signature", flat=True).first()


def _signed(agent: Agent, certificate: Certificate, octets: bytes, digest: str, now: datetime) -> str:
    try:
        slot = _signing.take(agent.tenant_id, seconds=LONGEST_WAIT_SECONDS)
    except AllTaken as error:
        raise Unavailable("More agent cards wait to be signed than can be; retry with backoff") from error
    with slot:
        found = _stored(agent, digest)
        if found is None:
            found = b64url_encode(sign_octets(certificate, octets))
            row = SignedCard(agent=agent, digest=digest, signature=found, signed_at=now)
            # Another process may have signed the same card meanwhile; signatures of one key are alike.
            SignedCard.objects.bulk_create(
                [row],
                update_conflicts=True,
                unique_fields=["agent"],
                update_fields=["digest", "signature", "signed_at"],
            )
    return found
