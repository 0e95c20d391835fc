"""`GET /1.0/identifiers/{did}`: the resolver of the service's own DID method."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from cryptography import x509
from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    inline_serializer,
)
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.did import parse_did
from agents.errors import AgentNotFound
from agents.models import Agent
from certificates import authorities
from certificates.models import Certificate, CertificateAuthority
from certificates.public.did_documents import CONTEXT, did_document
from certificates.public.did_history import DidHistory, end_of_second, history_of
from compliance.api.pagination import read_moment
from compliance.api.rest.negotiation import accepted_types
from compliance.api.rest.schema import MOMENT
from compliance.api.rest.views import PublicViewSet
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.errors import Invalid

DOCUMENT = "application/did+ld+json"
DOCUMENT_TYPES = {DOCUMENT, "application/did", "application/did+json"}


def _result(name: str, **fields: Any) -> Any:
    return inline_serializer(
        name,
        {
            **fields,
            "didDocument": serializers.DictField(allow_null=True),
            "didResolutionMetadata": serializers.DictField(),
            "didDocumentMetadata": serializers.DictField(),
        },
    )


RESOLUTION = _result("DidResolution")
VERSION_TIME = (
    "A past ISO 8601 date-time, UTC where no zone is given; without a fraction, the end of that second."
)
EXAMPLE_DID = "did:service:live:0193d2a4-7b5e-7cc3-98c4-dc0c0c07398f"
EXAMPLE = OpenApiExample(
    "An agent before its first certificate",
    response_only=True,
    status_codes=["200"],
    value={
        "didDocument": {"@context": CONTEXT, "id": EXAMPLE_DID, "controller": EXAMPLE_DID},
        "didResolutionMetadata": {"contentType": DOCUMENT},
        "didDocumentMetadata": {
            "created": "2026-01-02T03:04:05Z",
            "updated": "2026-01-02T03:04:05Z",
            "deactivated": False,
            "versionId": "1",
            "versionTime": "2026-01-02T03:04:05Z",
        },
    },
)
FAILED_RESOLUTION = _result("FailedDidResolution", error=serializers.CharField())


class DidViewSet(PublicViewSet):
    """DID resolution by W3C's HTTP binding: the bare result, without the data envelope."""

    schema_tag = "Verification"

    @extend_schema(
        operation_id="resolveDid",
        summary="Resolve an agent's decentralized identifier",
        description=(
            "Answers the resolution result; with `Accept: application/did` the bare document. With "
            "`versionTime` the document as it was then. 400 for what is no DID and for a malformed or future "
            "time, 404 for an unknown agent or one that was not there yet, 410 for a retired one, 501 for "
            "other methods."
        ),
        parameters=[
            OpenApiParameter("did", OpenApiTypes.STR, location=OpenApiParameter.PATH),
            OpenApiParameter("versionTime", MOMENT, description=VERSION_TIME),
        ],
        examples=[EXAMPLE],
        responses={
            (200, "application/json"): RESOLUTION,
            (410, "application/json"): FAILED_RESOLUTION,
            400: OpenApiResponse(FAILED_RESOLUTION, "Not a DID, or no time of the past"),
            404: OpenApiResponse(FAILED_RESOLUTION, "No such agent, or not yet at that time"),
            405: OpenApiResponse(FAILED_RESOLUTION, "The path has no such method"),
            429: OpenApiResponse(FAILED_RESOLUTION, "Rate limit exceeded"),
            501: OpenApiResponse(FAILED_RESOLUTION, "Another DID method"),
            503: OpenApiResponse(FAILED_RESOLUTION, "A dependency is unavailable"),
        },
    )
    def resolve(self, request: Request, did: str) -> Response:
        if not did.startswith("did:") or did.count(":") < 2:
            return _failed(400, "invalidDid", "Not a decentralized identifier")
        if did.split(":")[1] != settings.SERVICE_NAME:
            return _failed(501, "methodNotSupported", "This resolver serves its own DID method only")
        parsed = parse_did(did)
        if parsed is None:
            return _failed(400, "invalidDid", "Not an identifier of this DID method")
        moment = now()
        try:
            asked_at = _asked_moment(request, moment)
        except Invalid as error:
            return _failed(400, "invalidOptions", error.message)
        with environments.use(parsed.environment):
            try:
                agent = Agent.objects.find(parsed.agent_id)
            except AgentNotFound:
                return _failed(404, "notFound", "Agent not found")
            return _resolved(request, agent, history_of(agent, now=moment), asked_at)


def _asked_moment(request: Request, moment: datetime) -> datetime:
    """The time of the version that is wanted, now without one; raises `Invalid`."""
    asked = read_moment(request.query_params, "versionTime")
    if asked is None:
        return moment
    if asked > moment:
        raise Invalid("versionTime must not lie in the future")
    return min(end_of_second(asked), moment)


def _resolved(request: Request, agent: Agent, history: DidHistory, moment: datetime) -> Response:
    number = history.number_at(moment)
    if number == 0:
        return _failed(404, "notFound", "The agent was not there yet")
    if history.is_retired_at(moment):
        return _failed(410, "deactivated", "Agent is retired", {"deactivated": True})
    chain = _chain(history.versions[number - 1].certificate_id)
    document = did_document(agent.did, chain=chain, base_url=settings.BASE_URL)
    wanted = accepted_types(request.headers.get("Accept", "*/*"))
    if wanted and wanted[0] in DOCUMENT_TYPES:
        return Response(document, content_type=wanted[0])
    result = {
        "didDocument": document,
        "didResolutionMetadata": {"contentType": DOCUMENT},
        "didDocumentMetadata": _metadata(history, number),
    }
    return Response(result)


def _metadata(history: DidHistory, number: int) -> dict[str, Any]:
    """The metadata of a version (DID 1.0 §7.1.3); its times are whole seconds."""
    since = _seconds(history.versions[number - 1].since)
    metadata: dict[str, Any] = {
        "created": _seconds(history.versions[0].since),
        "updated": since,
        "deactivated": history.retired_at is not None,
        "versionId": str(number),
        "versionTime": since,
    }
    if number < len(history.versions):
        metadata["nextUpdate"] = _seconds(history.versions[number].since)
        metadata["nextVersionId"] = str(number + 1)
    return metadata


def _seconds(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _chain(certificate_id: UUID | None) -> list[x509.Certificate]:
    """The certificate and the CAs above it; empty without one."""
    if certificate_id is None:
        return []
    row = Certificate.objects.select_related("authority__parent").get(id=certificate_id)
    chain = [x509.load_pem_x509_certificate(row.certificate_pem.encode())]
    authority: CertificateAuthority | None = row.authority
    while authority is not None:
        chain.append(authorities.issuer_info(authority).certificate)
        authority = authority.parent
    return chain


def _failed(status: int, code: str, message: str, metadata: dict[str, Any] | None = None) -> Response:
    body = {
        "error": message,
        "didDocument": None,
        "didResolutionMetadata": {"error": code},
        "didDocumentMetadata": metadata or {},
    }
    return Response(body, status=status)
