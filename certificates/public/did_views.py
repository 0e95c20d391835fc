"""`GET /1.0/identifiers/{did}`: the resolver of the service's own DID method."""

from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding
from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, inline_serializer
from jwt.algorithms import RSAAlgorithm
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.did import parse_did
from agents.errors import AgentNotFound
from agents.models import Agent, AgentStatus
from certificates import authorities
from certificates.models import Certificate, CertificateAuthority
from compliance.api.rest.negotiation import accepted_types
from compliance.api.rest.views import PublicViewSet
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.encodings import b64_encode

CONTEXT = ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/jwk/v1"]
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
FAILED_RESOLUTION = _result("FailedDidResolution", error=serializers.CharField())


class DidViewSet(PublicViewSet):
    """DID resolution by W3C's HTTP binding: the bare result, without the data envelope."""

    schema_tag = "Verification"

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
            400: OpenApiResponse(FAILED_RESOLUTION, "Not a DID"),
            404: OpenApiResponse(FAILED_RESOLUTION, "No such agent"),
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


def did_document(did: str, *, chain: list[x509.Certificate], verify_url: str | None) -> dict[str, Any]:
    """The document of an agent; `chain` is its active certificate and the CAs above it, or empty."""
    document: dict[str, Any] = {"@context": CONTEXT, "id": did, "controller": did}
    if chain:
        method = f"{did}#{chain[0].serial_number:040x}"
        document["verificationMethod"] = [
            {"id": method, "type": "JsonWebKey", "controller": did, "publicKeyJwk": _public_jwk(chain)}
        ]
        document["assertionMethod"] = [method]
        document["authentication"] = [method]
    if verify_url:
        service = {"id": f"{did}#certificate", "type": "CertificateVerification"}
        document["service"] = [{**service, "serviceEndpoint": verify_url}]
    return document


def _public_jwk(chain: list[x509.Certificate]) -> dict[str, Any]:
    """The RSA public key of the first certificate as a JWK (RFC 7518 §6.3.1), with `x5c`."""
    key = chain[0].public_key()
    if not isinstance(key, RSAPublicKey):
        raise TypeError("agents' keys are RSA")
    jwk = RSAAlgorithm.to_jwk(key, as_dict=True)
    x5c = [b64_encode(link.public_bytes(Encoding.DER)) for link in chain]
    return {"kty": jwk["kty"], "alg": "RS256", "n": jwk["n"], "e": jwk["e"], "x5c": x5c}
