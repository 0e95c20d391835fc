"""`GET /v1/agent-cards/{did}`."""

import rfc8785
from django.http import HttpResponse
from django.utils.cache import get_conditional_response
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.request import Request

from agents.models import Agent, parse_did
from certificates.errors import CardNotFound
from certificates.models import Certificate
from certificates.public.agent_cards import content_of, published
from certificates.public.documents import CACHEABLE, JSON
from compliance.api.rest.schema import errors
from compliance.api.rest.views import PublicViewSet
from compliance.core.clock import now

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
        card = published(parsed, now=now())
        response = HttpResponse(rfc8785.dumps(card.document), content_type=JSON)
        response["ETag"] = etag = f'"{card.digest}"'
        response["Cache-Control"] = CACHEABLE
        return get_conditional_response(request, etag, None, response) or response
