"""`/v1/agents/{id}/sign` and `/v1/verify/message`."""

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from auditlog.actors.requests import caller_of
from certificates.public.public_views import UncachedViewSet
from compliance.api import gate, unauthenticated
from compliance.api.gate import Credential, GateRequest, Scope
from compliance.api.pagination import ok
from compliance.api.rate_limits import hit
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import PUBLIC, enveloped, errors
from compliance.api.rest.views import ApiViewSet, operation, validated
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.errors import Unauthorized
from events.messages import services
from events.messages.serializers import (
    JWS,
    VERIFY_MESSAGE_SCHEMA,
    MessageVerificationSerializer,
    SignatureSerializer,
    SignSerializer,
    VerifyMessageInputSerializer,
)
from tenancy import keys
from tenancy.authentication import ApiKeyAuthentication, MissingCredentials

SIGN_EXAMPLES = [
    OpenApiExample("A signature", request_only=True, value={"payload": {"order": 17}}),
    OpenApiExample(
        "And a JWS for one receiver",
        request_only=True,
        value={"payload": {"order": 17}, "format": JWS, "audience": "https://broker.example"},
    ),
]
_SERIAL = "4f1d0c3b2a19087f6e5d4c3b2a19087f6e5d4c3b"
VERIFY_EXAMPLE = OpenApiExample(
    "A signature",
    request_only=True,
    value={"payload": {"order": 17}, "signature": "bWVzc2FnZQ==", "certificate_serial": _SERIAL},
)


class SigningViewSet(ApiViewSet):
    """Signatures in an agent's name."""

    schema_tag = "Message signing"

    @operation(
        "signMessage",
        "Sign a payload with an agent's managed key",
        Scope.MESSAGES_SIGN,
        SignatureSerializer,
        description=(
            "Signs the payload's canonical JSON (RFC 8785) and records a message_signed event. With `format` "
            "or `audience` the answer has a detached JWS as well."
        ),
        request=SignSerializer,
        examples=SIGN_EXAMPLES,
        e404="Agent not found",
        e422="Agent is not active",
    )
    def sign(self, request: ApiRequest, agent_id: str) -> Response:
        asked = validated(SignSerializer, request)
        signed, event = services.sign(
            agent_id=agent_id,
            payload=asked["payload"],
            as_jws="format" in asked or "audience" in asked,
            audience=asked.get("audience"),
            **caller_of(request),
        )
        about = {"agent_id": event.agent_id, "signed_at": event.received_at, "event": event}
        return ok(SignatureSerializer({**vars(signed), **about}).data)


class MessageViewSet(UncachedViewSet):
    """Anyone may check a message; a key counts only where its tenant's agent is to get an event."""

    @extend_schema(
        operation_id="verifyMessage",
        summary="Verify a message that an agent signed",
        description=(
            "200 for both outcomes: branch on `data.valid`. A message that is not valid is recorded as a "
            "message_verification_failed event of `verifier_agent_id`, an agent of the API key's tenant; "
            "without that field a key sent along has no say."
        ),
        request={"application/json": VERIFY_MESSAGE_SCHEMA},
        examples=[VERIFY_EXAMPLE],
        responses={
            200: enveloped(MessageVerificationSerializer),
            **errors(*PUBLIC, 401, 403, e404="Certificate not found", e422="Agent is not active"),
        },
    )
    def create(self, request: Request) -> Response:
        asked = validated(VerifyMessageInputSerializer, request)
        verifier_id, event = asked.pop("verifier_agent_id", None), None
        if verifier_id is None:
            outcome = services.verify(**asked, now=now())
        else:
            secret = gate.bearer_token(GateRequest.of(request))
            if secret is None:
                raise MissingCredentials()
            # What is no key counts as live, as everywhere.
            with environments.use(keys.environment_of(secret) or Environment.LIVE):
                outcome, event = services.verify_for(
                    tenant_id=self._reporter(request).tenant_id,
                    agent_id=verifier_id,
                    now=now(),
                    **asked,
                )
        shown = MessageVerificationSerializer(outcome).data
        return ok(shown if event is None else {**shown, "event_id": event.id})

    def _reporter(self, request: Request) -> Credential:
        """The key of a caller who may record events, and has not done so too often."""
        try:
            _, key = ApiKeyAuthentication().authenticate(request)
        except Unauthorized:
            # This public view would not count a wrong key with the others of its address.
            group, address = unauthenticated.API, gate.client_address(GateRequest.of(request))
            limit = unauthenticated.refusal(group, address) or unauthenticated.count(group, address)
            if not limit.allowed:
                self.throttled(request, limit.retry_after)
            raise
        limit = hit("events", str(key.id))
        if not limit.allowed:
            self.throttled(request, limit.retry_after)
        gate.require_scope(key, Scope.EVENTS_WRITE)
        return key
