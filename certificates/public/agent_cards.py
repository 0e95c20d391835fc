"""`GET /v1/agent-cards/{did}`: signed A2A cards (1.0 §4.4.1); a card is signed once, until it changes.

No member is empty: A2A leaves empty members out of what is signed, and implementations differ on which.
"""

import hashlib
from datetime import datetime
from typing import Any, Final

import rfc8785
from django.conf import settings
from django.http import HttpResponse
from django.utils.cache import get_conditional_response
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.request import Request

from agents.errors import AgentNotFound
from agents.models import Agent, AgentDid, AgentStatus, parse_did
from certificates.errors import CardNotFound
from certificates.models import Certificate, SignedCard
from certificates.pki import jws as jose
from certificates.public.documents import CACHEABLE, JSON
from certificates.public.messages import key_id, sign_octets
from compliance.api.rest.schema import errors
from compliance.api.rest.views import PublicViewSet
from compliance.core import environments
from compliance.core.clock import now
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


def published(did: AgentDid, *, now: datetime) -> tuple[dict[str, Any], str]:
    """Return an active agent's signed card and its digest. Raises: CardNotFound, the HSM's 503 errors."""
    with environments.use(did.environment):
        try:
            agent = Agent.objects.find(did.agent_id)
        except AgentNotFound as error:
            raise CardNotFound() from error
        certificate = Certificate.objects.of_agent(agent.id).active(now).first()
        if agent.agent_card is None or agent.status != AgentStatus.ACTIVE or certificate is None:
            raise CardNotFound()
        if not certificate.claims["permitted_actions"]:
            raise CardNotFound()
        content = content_of(agent, certificate, base_url=settings.BASE_URL)
        protected = jose.card_header(key_id(certificate))
        octets = jose.card_input(protected, rfc8785.dumps(content))
        digest = hashlib.sha256(octets).hexdigest()
        signature = _stored(agent, digest) or _signed(agent, certificate, octets, digest, now)
    signatures = [{"protected": protected, "signature": signature}]
    return {**content, "signatures": signatures}, digest


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


_DID = "did:service:live:0193d2a4-7b5e-7cc3-98c4-dc0c0c07398f"
_SERIAL = "4f1d0c3b2a19087f6e5d4c3b2a19087f6e5d4c3b"
_AGENT = Agent(
    name="trade-bot",
    description="Buys and sells on behalf of its operator.",
    agent_card={"url": "https://agents.example/trade-bot", "token_schemes": ["dpop"]},
)
_CLAIMS = {
    "did": _DID,
    "operator": "Example Trading GmbH",
    "model_version": "2.1.0",
    "permitted_actions": ["place_order"],
}
_CARD = content_of(
    _AGENT, Certificate(serial_number=_SERIAL, claims=_CLAIMS), base_url="https://service.example"
)
EXAMPLE = OpenApiExample(
    "A card",
    response_only=True,
    status_codes=["200"],
    value={**_CARD, "signatures": [{"protected": "eyJhbGciOi4uLn0", "signature": "c2lnbmVk"}]},
)


class AgentCardViewSet(PublicViewSet):
    """Cards as A2A clients read them: bare, without the data envelope."""

    schema_tag = "Verification"

    @extend_schema(
        operation_id="getAgentCard",
        summary="The signed A2A card of an agent that publishes one",
        description=(
            "Signed with the agent's key: `kid` is a DID URL of its DID document. 404 for an agent that has "
            "no `agent_card`, permits no action, or is not active and certified."
        ),
        parameters=[OpenApiParameter("did", OpenApiTypes.STR, location=OpenApiParameter.PATH)],
        examples=[EXAMPLE],
        responses={
            (200, JSON): OpenApiTypes.OBJECT,
            304: None,
            **errors(405, 429, 503, e404="The agent publishes no card"),
        },
    )
    def retrieve(self, request: Request, did: str) -> HttpResponse:
        parsed = parse_did(did)
        if parsed is None:
            raise CardNotFound()
        card, digest = published(parsed, now=now())
        response = HttpResponse(rfc8785.dumps(card), content_type=JSON)
        response["ETag"] = etag = f'"{digest}"'
        response["Cache-Control"] = CACHEABLE
        return get_conditional_response(request, etag, None, response) or response
