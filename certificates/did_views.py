"""`GET /1.0/identifiers/{did}`: the resolver of the service's own DID method."""

from typing import Any

from cryptography import x509
from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.did import parse_did
from agents.errors import AgentNotFound
from agents.models import Agent, AgentStatus
from certificates import authorities
from certificates.did_document import did_document
from certificates.models import Certificate, CertificateAuthority
from compliance import environments
from compliance.api.negotiation import accepted_types
from compliance.api.throttling import PublicThrottle
from compliance.api.views import PublicViewSet
from compliance.clock import now

DOCUMENT = "application/did+ld+json"
DOCUMENT_TYPES = {DOCUMENT, "application/did", "application/did+json"}

RESOLUTION = inline_serializer(
    "DidResolution",
    {
        "didDocument": serializers.DictField(allow_null=True),
        "didResolutionMetadata": serializers.DictField(),
        "didDocumentMetadata": serializers.DictField(),
    },
)
FAILED_RESOLUTION = inline_serializer(
    "FailedDidResolution",
    {
        "error": serializers.CharField(),
        "didDocument": serializers.DictField(allow_null=True),
        "didResolutionMetadata": serializers.DictField(),
        "didDocumentMetadata": serializers.DictField(),
    },
)


class DidViewSet(PublicViewSet):
    """Resolution per the HTTP binding of W3C DID Resolution: the bare result, not the data envelope."""

    schema_tag = "Verification"
    throttle_classes = (PublicThrottle,)

    @extend_schema(
        operation_id="resolveDid",
        summary="Resolve an agent's decentralized identifier",
        description=(
            "Answers the resolution result; with `Accept: application/did` the bare document. "
            "400 for what is no DID, 404 for an unknown agent, 410 for a retired one, 501 for other methods."
        ),
        parameters=[OpenApiParameter("did", OpenApiTypes.STR, location=OpenApiParameter.PATH)],
        responses={
            (200, "application/json"): RESOLUTION,
            (410, "application/json"): FAILED_RESOLUTION,
            **{
                status: OpenApiResponse(FAILED_RESOLUTION, description)
                for status, description in (
                    (400, "Not a DID"),
                    (404, "No such agent"),
                    (405, "The path has no such method"),
                    (429, "Rate limit exceeded"),
                    (501, "Another DID method"),
                    (503, "A dependency is unavailable"),
                )
            },
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
        with environments.use(parsed.environment):
            try:
                agent = Agent.objects.find(parsed.agent_id)
            except AgentNotFound:
                return _failed(404, "notFound", "Agent not found")
            if agent.status == AgentStatus.RETIRED:
                return _failed(410, "deactivated", "Agent is retired", {"deactivated": True})
            return _resolved(request, agent)


def _resolved(request: Request, agent: Agent) -> Response:
    certificate = (
        Certificate.objects.active(now()).filter(agent=agent).select_related("authority__parent").first()
    )
    document = did_document(
        agent.did,
        controller=None,
        chain=_chain(certificate) if certificate else [],
        verify_url=f"{settings.BASE_URL}/v1/verify/{certificate.serial_number}" if certificate else None,
    )
    wanted = accepted_types(request.headers.get("Accept", "*/*"))
    if wanted and wanted[0] in DOCUMENT_TYPES:
        return Response(document, content_type=wanted[0])
    metadata = {"created": agent.created_at, "updated": agent.updated_at, "deactivated": False}
    result = {
        "didDocument": document,
        "didResolutionMetadata": {"contentType": DOCUMENT},
        "didDocumentMetadata": metadata,
    }
    return Response(result)


def _chain(certificate: Certificate) -> list[x509.Certificate]:
    chain = [x509.load_pem_x509_certificate(certificate.certificate_pem.encode())]
    authority: CertificateAuthority | None = certificate.authority
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
