"""`/v1/ssf` and `/.well-known/ssf-configuration`: bare JSON, as OpenID SSF 1.0 and RFC 8936 demand."""

from typing import Any
from uuid import UUID

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from auditlog.actors.requests import caller_of
from compliance.api.gate import Scope, require_scope
from compliance.api.pagination import read_environment, read_id
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import ENVIRONMENT, PUBLIC, errors
from compliance.api.rest.views import ApiViewSet, PublicViewSet, operation, validated
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.errors import Invalid
from signals import openapi, polling, serializers, streams
from signals.models import Stream
from signals.serializers import StreamSerializer, StreamStatusSerializer
from signals.vocabulary import (
    SPEC_VERSION,
    SUPPORTED_EVENTS,
    DeliveryMethod,
    StreamStatus,
)

NOT_FOUND = "Stream not found"
MAX_AGE_SECONDS = 600


class StreamViewSet(ApiViewSet):
    """The configuration of the tenant's streams (SSF §8.1.1)."""

    schema_tag = "Signals"

    @operation(
        "createSignalStream",
        "Make a stream of signals",
        Scope.SIGNALS_WRITE,
        {201: StreamSerializer},
        description=openapi.CREATE_TEXT,
        request=serializers.CreateStreamSerializer,
        examples=[openapi.PUSH_STREAM, openapi.STREAM],
        repeats=True,
    )
    def create(self, request: ApiRequest) -> Response:
        given = validated(serializers.CreateStreamSerializer, request)
        stream = streams.create(
            delivery=serializers.delivery_from(given),
            events_requested=given.get("events_requested", list(SUPPORTED_EVENTS)),
            description=given.get("description", ""),
            **caller_of(request),
        )
        return Response(StreamSerializer(stream).data, status=201)

    @operation(
        "getSignalStreams",
        "Fetch a stream, or all",
        Scope.SIGNALS_READ,
        openapi.ONE_OR_ALL,
        description="With `stream_id` that stream; without it a list of all, newest first.",
        parameters=[openapi.OPTIONAL_STREAM_ID],
        examples=[openapi.STREAM],
        e404=NOT_FOUND,
    )
    def retrieve(self, request: ApiRequest) -> Response:
        if "stream_id" in request.query_params:
            return Response(StreamSerializer(_find(request)).data)
        found = Stream.objects.for_tenant(request.auth.tenant_id).newest_first()
        return Response([StreamSerializer(stream).data for stream in found])

    @operation(
        "updateSignalStream",
        "Change a stream",
        Scope.SIGNALS_WRITE,
        {200: StreamSerializer},
        description=openapi.UPDATE_TEXT,
        request=serializers.UpdateStreamSerializer,
        examples=[openapi.CHANGE, openapi.STREAM],
        e404=NOT_FOUND,
    )
    def partial_update(self, request: ApiRequest) -> Response:
        given = validated(serializers.UpdateStreamSerializer, request)
        stream_id = given.pop("stream_id")
        if "delivery" in given:
            given["delivery"] = serializers.delivery_from(given)
        changed = streams.update(stream_id=stream_id, changes=given, **caller_of(request))
        return Response(StreamSerializer(changed).data)

    @operation(
        "deleteSignalStream",
        "Remove a stream",
        Scope.SIGNALS_WRITE,
        status=204,
        description="What waits in it is dropped.",
        parameters=[openapi.STREAM_ID],
        e404=NOT_FOUND,
    )
    def destroy(self, request: ApiRequest) -> Response:
        streams.delete(stream_id=_stream_id(request), **caller_of(request))
        return Response(status=204)

    @operation(
        "pollSignals",
        "Take signals by polling",
        Scope.SIGNALS_READ,
        {200: serializers.PollAnswerSerializer},
        description=openapi.POLL_TEXT,
        request=serializers.PollSerializer,
        examples=[openapi.POLL, openapi.POLLED],
        e404=NOT_FOUND,
        e422="The stream delivers by push",
    )
    def poll(self, request: ApiRequest, stream_id: str) -> Response:
        asked = serializers.poll_from(validated(serializers.PollSerializer, request))
        if asked["acknowledged"] or asked["refused"]:
            # What is acknowledged is deleted.
            require_scope(request.auth, Scope.SIGNALS_WRITE)
        answer = polling.poll(tenant_id=request.auth.tenant_id, stream_id=stream_id, **asked, now=now())
        sets = {str(signal.jti): signal.token for signal in answer.signals}
        return Response({"sets": sets, "moreAvailable": answer.more})


class StreamStatusViewSet(ApiViewSet):
    """Status and verification of a stream (SSF §8.1.2, §8.1.4)."""

    schema_tag = "Signals"

    @operation(
        "getSignalStreamStatus",
        "A stream's status",
        Scope.SIGNALS_READ,
        {200: StreamStatusSerializer},
        parameters=[openapi.STREAM_ID],
        examples=[openapi.STATUS],
        e404=NOT_FOUND,
    )
    def retrieve(self, request: ApiRequest) -> Response:
        return Response(StreamStatusSerializer(_find(request)).data)

    @operation(
        "setSignalStreamStatus",
        "Enable, pause or disable a stream",
        Scope.SIGNALS_WRITE,
        {200: StreamStatusSerializer},
        description="A paused stream keeps what happens; a disabled one drops what waits and what happens.",
        request=serializers.StatusInputSerializer,
        examples=[openapi.PAUSING, openapi.STATUS],
        e404=NOT_FOUND,
    )
    def change(self, request: ApiRequest) -> Response:
        given = validated(serializers.StatusInputSerializer, request)
        stream = streams.set_status(
            stream_id=given["stream_id"],
            status=StreamStatus(given["status"]),
            reason=given.get("reason", ""),
            **caller_of(request),
        )
        return Response(StreamStatusSerializer(stream).data)

    @operation(
        "verifySignalStream",
        "Ask for a verification event",
        Scope.SIGNALS_WRITE,
        status=204,
        description="The event comes behind what waits, with the same `state`.",
        request=serializers.StreamVerificationSerializer,
        examples=[openapi.VERIFICATION],
        e404=NOT_FOUND,
        e409="The stream was asked for a verification event a moment ago",
        e422="The stream is disabled",
    )
    def verify(self, request: ApiRequest) -> Response:
        given = validated(serializers.StreamVerificationSerializer, request)
        stream_id, state = given["stream_id"], given.get("state")
        streams.request_verification(stream_id=stream_id, state=state, **caller_of(request))
        return Response(status=204)


class TransmitterViewSet(PublicViewSet):
    """Metadata of this transmitter (SSF §7.1)."""

    schema_tag = "Signals"

    @extend_schema(
        operation_id="getSsfConfiguration",
        summary="Configuration of the signals' transmitter",
        auth=[],
        parameters=[ENVIRONMENT],
        examples=[openapi.TRANSMITTER],
        responses={200: serializers.TransmitterSerializer, **errors(*PUBLIC)},
    )
    def configuration(self, request: Request) -> Response:
        headers = {"Cache-Control": f"public, max-age={MAX_AGE_SECONDS}"}
        return Response(_configuration(read_environment(request.query_params)), headers=headers)


def _configuration(environment: Environment) -> dict[str, Any]:
    base = settings.BASE_URL
    which = "" if environment is Environment.LIVE else f"?environment={environment.value}"
    return {
        "spec_version": SPEC_VERSION,
        "issuer": settings.TOKEN_ISSUER,
        "jwks_uri": f"{base}/.well-known/jwks.json{which}",
        "delivery_methods_supported": list(DeliveryMethod.values),
        "configuration_endpoint": f"{base}/v1/ssf/streams",
        "status_endpoint": f"{base}/v1/ssf/status",
        "verification_endpoint": f"{base}/v1/ssf/verify",
        "authorization_schemes": [{"spec_urn": "urn:ietf:rfc:6750"}],
        "default_subjects": "ALL",
    }


def _stream_id(request: ApiRequest) -> UUID:
    found = read_id(request.query_params, "stream_id")
    if found is None:
        raise Invalid("stream_id: name the stream in the query")
    return found


def _find(request: ApiRequest) -> Stream:
    return Stream.objects.for_tenant(request.auth.tenant_id).find(_stream_id(request))
