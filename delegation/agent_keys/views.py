"""`/v1/agents/{id}/keys` and `/v1/key-directories/{tenant_id}`."""

from typing import Any, Final

from django.core.validators import RegexValidator
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.errors import AgentNotFound
from agents.models import Agent
from agents.serializers import ReasonSerializer
from auditlog.actors.requests import caller_of
from compliance.api.gate import Scope
from compliance.api.pagination import ok, read_environment
from compliance.api.rest.fields import ClosedSerializer, RowSerializer, StrictCharField
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import ENVIRONMENT, PUBLIC, enveloped, errors
from compliance.api.rest.views import ApiViewSet, PublicViewSet, operation, validated
from compliance.core import environments
from compliance.core.clock import now
from delegation import proofs
from delegation.agent_keys import directory, services
from delegation.agent_keys.errors import AgentKeyExists, AgentKeyNotFound, AgentKeyNotProven
from delegation.agent_keys.models import AgentKey

PROOF: Final = OpenApiParameter(
    "DPoP",
    location=OpenApiParameter.HEADER,
    description="A proof (RFC 9449) by the key itself, for this URL under the service's public address.",
)
_JWK: Final = {"kty": "OKP", "crv": "Ed25519", "x": "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"}
_THUMBPRINT: Final = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"
REGISTRATION: Final = OpenApiExample("A public key", request_only=True, value={"jwk": _JWK})
DIRECTORY: Final = OpenApiExample(
    "Keys", response_only=True, value={"keys": [{**_JWK, "kid": _THUMBPRINT, "use": "sig"}]}
)
_SHOWN: Final = {
    "id": "019a9f5e-7a10-7b20-8c30-4d5e6f708193",
    "agent_id": "019a9f5e-6f5a-7c43-9a53-0c4c1f3d2b11",
    "thumbprint": _THUMBPRINT,
    "jwk": _JWK,
    "created_at": "2026-11-20T09:00:00Z",
    "revoked_at": None,
}
REGISTERED: Final = OpenApiExample(
    "Registered", response_only=True, status_codes=["201"], value={"data": _SHOWN}
)


class AgentJwkSerializer(ClosedSerializer):
    """A public Ed25519 key (RFC 8037) and no more: a private half is refused."""

    kty = serializers.ChoiceField(choices=["OKP"])
    crv = serializers.ChoiceField(choices=["Ed25519"])
    x = StrictCharField(max_length=43, validators=[RegexValidator(r"^[A-Za-z0-9_-]{43}\Z")])


class RegisterAgentKeySerializer(serializers.Serializer[Any]):
    """`POST /v1/agents/{id}/keys`."""

    jwk = AgentJwkSerializer()


class AgentKeySerializer(RowSerializer[AgentKey]):
    """A key of an agent."""

    jwk = AgentJwkSerializer()

    class Meta:
        model = AgentKey
        fields = ["id", "agent_id", "thumbprint", "jwk", "created_at", "revoked_at"]


class AgentKeyViewSet(ApiViewSet):
    """Keys that agents made themselves."""

    schema_tag = "Agents"

    @operation(
        "registerAgentKey",
        "Register a key by which an agent signs requests",
        Scope.AGENTS_WRITE,
        AgentKeySerializer,
        status=201,
        description=(
            "The agent makes the key and proves its possession by the header `DPoP`. At most "
            f"{services.MOST_KEYS} keys of an agent are in force; each is registered once in an environment."
        ),
        parameters=[PROOF],
        request=RegisterAgentKeySerializer,
        examples=[REGISTRATION, REGISTERED],
        e404=AgentNotFound.message,
        e409=AgentKeyExists.message,
        e422=AgentKeyNotProven.message,
    )
    def create(self, request: ApiRequest, agent_id: str) -> Response:
        jwk, moment = validated(RegisterAgentKeySerializer, request)["jwk"], now()
        # Before the proof is used up, and whether there is one.
        Agent.objects.for_tenant(request.auth.tenant_id).find(agent_id)
        path, sent = f"/v1/agents/{agent_id}/keys", request.headers.get("DPoP")
        proven = proofs.proven_key(proof=sent, path=path, now=moment)
        row = services.register(agent_id=agent_id, jwk=jwk, proven_key=proven, **caller_of(request))
        return ok(AgentKeySerializer(row).data, status=201)

    @operation(
        "listAgentKeys",
        "List an agent's keys, newest first",
        Scope.AGENTS_READ,
        enveloped(AgentKeySerializer, many=True),
        e404=AgentNotFound.message,
    )
    def list(self, request: ApiRequest, agent_id: str) -> Response:
        agent = Agent.objects.for_tenant(request.auth.tenant_id).find(agent_id)
        rows = AgentKey.objects.for_tenant(request.auth.tenant_id).of_agent(agent.id)
        return ok(AgentKeySerializer(rows, many=True).data)

    @operation(
        "revokeAgentKey",
        "Revoke a key of an agent",
        Scope.AGENTS_WRITE,
        AgentKeySerializer,
        description=(
            "Counts at once at gateways, and within a minute in the directory. Revoking again changes "
            "nothing."
        ),
        request=ReasonSerializer,
        e404=AgentKeyNotFound.message,
    )
    def revoke(self, request: ApiRequest, agent_id: str, key_id: str) -> Response:
        reason = validated(ReasonSerializer, request)["reason"]
        row = services.revoke(agent_id=agent_id, key_id=key_id, reason=reason, **caller_of(request))
        return ok(AgentKeySerializer(row).data)


class KeyDirectoryViewSet(PublicViewSet):
    schema_tag = "Agents"

    @extend_schema(
        operation_id="getKeyDirectory",
        summary="The keys of a tenant's agents",
        description=(
            "An HTTP message signatures directory (Web Bot Auth), to be served from the tenant's domain at "
            "`/.well-known/http-message-signatures-directory`. Keys of agents that are not active with a "
            "certificate in force are left out. Signed by a key of `/.well-known/jwks.json`."
        ),
        auth=[],
        parameters=[ENVIRONMENT],
        responses={
            (200, directory.MEDIA_TYPE): OpenApiResponse(OpenApiTypes.OBJECT, examples=[DIRECTORY]),
            **errors(*PUBLIC, e404="Tenant not found"),
        },
    )
    def retrieve(self, request: Request, tenant_id: str) -> HttpResponse:
        with environments.use(read_environment(request.query_params)):
            found = directory.read(tenant_id=tenant_id, now=now())
        headers = {**found.headers, "Cache-Control": f"public, max-age={directory.MAX_AGE_SECONDS}"}
        return HttpResponse(found.body, content_type=directory.MEDIA_TYPE, headers=headers)
