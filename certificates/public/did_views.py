"""`GET /1.0/identifiers/{did}`: the resolver of the service's own DID method."""

from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, cast
from uuid import UUID

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import AuthorityInformationAccessOID
from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    inline_serializer,
)
from jwt.algorithms import RSAAlgorithm
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.errors import AgentNotFound
from agents.models import Agent, AgentStatus, parse_did
from certificates.models import Certificate, EndedHold
from compliance.api.pagination import read_moment, read_size
from compliance.api.rest.schema import MOMENT
from compliance.api.rest.views import PublicViewSet
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.encodings import b64_encode
from compliance.core.errors import Invalid

TICK = timedelta(microseconds=1)
CONTEXT = ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/jwk/v1"]


def did_document(did: str, *, chain: list[x509.Certificate], base_url: str) -> dict[str, Any]:
    """The document of an agent; `chain` is its certificate in force and the CAs above it, or empty."""
    document: dict[str, Any] = {"@context": CONTEXT, "id": did, "controller": did}
    if chain:
        serial = f"{chain[0].serial_number:040x}"
        method = f"{did}#{serial}"
        key = RSAAlgorithm.to_jwk(cast("RSAPublicKey", chain[0].public_key()), as_dict=True)
        x5c = [b64_encode(link.public_bytes(Encoding.DER)) for link in chain]
        # RFC 7518 §6.3.1
        jwk = {"kty": key["kty"], "alg": "RS256", "n": key["n"], "e": key["e"], "x5c": x5c}
        document["verificationMethod"] = [
            {"id": method, "type": "JsonWebKey", "controller": did, "publicKeyJwk": jwk}
        ]
        document["assertionMethod"] = [method]
        document["authentication"] = [method]
        endpoints = {
            "certificate": ("CertificateVerification", f"{base_url}/v1/verify/{serial}"),
            **dict(_status_endpoints(chain[0])),
            "agent-card": ("A2AAgentCard", f"{base_url}/v1/agent-cards/{did}"),
        }
        document["service"] = [
            {"id": f"{did}#{name}", "type": kind, "serviceEndpoint": endpoint}
            for name, (kind, endpoint) in endpoints.items()
        ]
    return document


def _status_endpoints(leaf: x509.Certificate) -> Iterator[tuple[str, tuple[str, str]]]:
    """The revocation services that the certificate names (RFC 5280 §4.2.1.13, §4.2.2.1)."""
    points = leaf.extensions.get_extension_for_class(x509.CRLDistributionPoints).value
    for point in points:
        for name in point.full_name or ():
            yield "crl", ("CertificateRevocationList", name.value)
    for access in leaf.extensions.get_extension_for_class(x509.AuthorityInformationAccess).value:
        if access.access_method == AuthorityInformationAccessOID.OCSP:
            yield "ocsp", ("OnlineCertificateStatusProtocol", access.access_location.value)


class Version(NamedTuple):
    """The document's content `since` a time until the next version: the certificate in force, if any."""

    since: datetime
    certificate_id: UUID | None


def history_of(agent: Agent, *, now: datetime) -> list[Version]:
    """Return the versions of the document up to now, oldest first; the number of the first is 1."""
    first = agent.created_at
    content: dict[datetime, UUID | None] = {first: None}
    for start, end, certificate_id in sorted(_times_in_force(agent)):
        # A certificate that follows at once takes the place of the end of the one before.
        content[max(start, first)] = certificate_id
        content[max(end, first)] = None
    return [Version(since, certificate_id) for since, certificate_id in content.items() if since <= now]


def _times_in_force(agent: Agent) -> Iterator[tuple[datetime, datetime, UUID]]:
    """Return when each certificate was the one in force: from issue to its end, but for its holds."""
    holds: dict[UUID, list[tuple[datetime, datetime]]] = {}
    ended = EndedHold.objects.filter(certificate__agent=agent).order_by("held_at", "id")
    for certificate_id, held_at, ended_at in ended.values_list("certificate_id", "held_at", "ended_at"):
        holds.setdefault(certificate_id, []).append((held_at, ended_at))
    found = Certificate.objects.filter(agent=agent).order_by("issued_at", "id")
    rows = list(found.values_list("id", "issued_at", "expires_at", "revoked_at"))
    for place, row in enumerate(rows, 1):
        certificate_id, start, expires_at, revoked_at = row
        # The successor takes over at once, even where the certificate stays valid for a while.
        successors = [issued_at for _, issued_at, _, _ in rows[place : place + 1]]
        end = min([expires_at + TICK, *([revoked_at] if revoked_at else []), *successors])
        for held_at, ended_at in holds.get(certificate_id, []):
            if start < min(held_at, end):
                yield start, min(held_at, end), certificate_id
            start = max(start, ended_at)
        if start < end:
            yield start, end, certificate_id


DOCUMENT = "application/did+ld+json"
DOCUMENT_TYPES = {DOCUMENT, "application/did", "application/did+json"}
RESULT = "application/did-resolution"


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
            "`versionTime` or `versionId` the document as it was then. 400 for what is no DID and for a "
            "malformed or future time, 404 for an unknown agent or version or one that was not there yet, "
            "410 for a retired one, 501 for other methods."
        ),
        parameters=[
            OpenApiParameter("did", OpenApiTypes.STR, location=OpenApiParameter.PATH),
            OpenApiParameter("versionTime", MOMENT, description=VERSION_TIME),
            OpenApiParameter(
                "versionId",
                {"type": "string", "pattern": "^(0|[1-9][0-9]{0,15})$"},
                description="The version of that number, as the metadata states it; not with `versionTime`.",
            ),
        ],
        examples=[EXAMPLE],
        responses={
            (200, "application/json"): RESOLUTION,
            (200, RESULT): RESOLUTION,
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
            asked_at, number = _asked(request, moment)
        except Invalid as error:
            return _failed(400, "invalidOptions", error.message)
        with environments.use(parsed.environment):
            try:
                agent = Agent.objects.find(parsed.agent_id)
            except AgentNotFound:
                return _failed(404, "notFound", "Agent not found")
            history = history_of(agent, now=moment)
            if number is not None:
                if not 1 <= number <= len(history):
                    return _failed(404, "notFound", "The document has no such version")
                asked_at = history[number - 1].since
            return _resolved(request, agent, history, asked_at)


def _asked(request: Request, moment: datetime) -> tuple[datetime, int | None]:
    """Return the time of the wanted version, by default now, and its number if asked for. Raises: Invalid."""
    if {"versionId", "versionTime"} <= request.query_params.keys():
        raise Invalid("versionId and versionTime exclude each other")
    asked = read_moment(request.query_params, "versionTime") or moment
    if asked > moment:
        raise Invalid("versionTime must not lie in the future")
    if not asked.microsecond:  # the end of that second: DID metadata names times without fractions
        asked += timedelta(seconds=1, microseconds=-1)
    return min(asked, moment), read_size(request.query_params, "versionId")


def _resolved(request: Request, agent: Agent, history: list[Version], moment: datetime) -> Response:
    number = bisect_right(history, moment, key=lambda version: version.since)
    is_retired = agent.status == AgentStatus.RETIRED
    if number == 0:
        return _failed(404, "notFound", "The agent was not there yet")
    if is_retired and agent.status_changed_at <= moment:
        return _failed(410, "deactivated", "Agent is retired", {"deactivated": True})
    chain: list[x509.Certificate] = []
    if certificate_id := history[number - 1].certificate_id:
        row = Certificate.objects.select_related("authority__parent").get(id=certificate_id)
        issuers = [one.as_issuer.certificate for one in (row.authority, row.authority.parent) if one]
        chain = [x509.load_pem_x509_certificate(row.certificate_pem.encode()), *issuers]
    document = did_document(agent.did, chain=chain, base_url=settings.BASE_URL)
    wanted = next((f"{one.main_type}/{one.sub_type}" for one in request.accepted_types), "")
    if wanted in DOCUMENT_TYPES:
        return Response(document, content_type=wanted)
    result = {
        "didDocument": document,
        "didResolutionMetadata": {"contentType": DOCUMENT},
        "didDocumentMetadata": _metadata(history, number, is_retired),
    }
    return Response(result, content_type=RESULT if wanted == RESULT else None)


def _metadata(history: list[Version], number: int, is_retired: bool) -> dict[str, Any]:
    """The metadata of a version (DID 1.0 §7.1.3); its times are whole seconds."""
    since = _seconds(history[number - 1].since)
    metadata: dict[str, Any] = {
        "created": _seconds(history[0].since),
        "updated": since,
        "deactivated": is_retired,
        "versionId": str(number),
        "versionTime": since,
    }
    if number < len(history):
        metadata["nextUpdate"] = _seconds(history[number].since)
        metadata["nextVersionId"] = str(number + 1)
    return metadata


def _seconds(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _failed(status: int, code: str, message: str, metadata: dict[str, Any] | None = None) -> Response:
    body = {
        "error": message,
        "didDocument": None,
        "didResolutionMetadata": {"error": code},
        "didDocumentMetadata": metadata or {},
    }
    return Response(body, status=status)
