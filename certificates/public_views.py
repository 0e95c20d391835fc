"""What anyone may ask without credentials: verify a certificate or a message, fetch CAs and revocation
lists.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from certificates import services
from certificates.crl import DELTA, FULL, pem_size, shard_name, to_pem
from certificates.errors import AuthorityMissing, AuthorityNotFound, ListNotFound, ListNotGenerated
from certificates.models import AuthorityRole, CertificateAuthority, RevocationList
from certificates.publishing import Document, serve
from certificates.serializers import (
    ChainSerializer,
    MessageVerificationSerializer,
    VerificationSerializer,
    VerifyMessageInputSerializer,
    shown_verification,
)
from certificates.serials import environment_of, parse_serial
from compliance import environments
from compliance.api.negotiation import accepted_types
from compliance.api.pagination import read_choice, read_moment
from compliance.api.responses import ok
from compliance.api.schema import MOMENT, PUBLIC, enveloped, errors
from compliance.api.throttling import PublicThrottle, VerifyThrottle
from compliance.api.views import PublicViewSet, validated
from compliance.clock import now
from compliance.environments import Environment

JSON, TEXT, PEM_FILE = "application/json", "text/plain", "application/x-pem-file"
DER_CRL, DER_CERTIFICATE = "application/pkix-crl", "application/pkix-cert"
LIST_FORMS = {DER_CRL: "der", TEXT: "pem", PEM_FILE: "pem"}
CERTIFICATE_FORMS = {DER_CERTIFICATE: "der", TEXT: "pem", PEM_FILE: "pem"}

ENVIRONMENT = OpenApiParameter(
    "environment",
    OpenApiTypes.STR,
    enum=[member.value for member in Environment],
    description="`live` when omitted.",
)
AT = OpenApiParameter(
    "at",
    MOMENT,
    description="A past ISO 8601 date-time, UTC where no zone is given.",
)
PART = OpenApiParameter(
    "part",
    OpenApiTypes.STR,
    location=OpenApiParameter.PATH,
    description="The number of a shard, or `delta`.",
)
SERIAL = OpenApiParameter(
    "serial",
    OpenApiTypes.STR,
    location=OpenApiParameter.PATH,
    description="Hex in any case, with or without colons.",
)


class UncachedViewSet(PublicViewSet):
    """Answers that nobody may keep, refusals included: what is revoked shows on the next call."""

    schema_tag = "Verification"

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        response["Cache-Control"] = "no-store"
        return response


class VerifyViewSet(UncachedViewSet):
    """Verification by serial number, from the database at every call."""

    throttle_classes = (VerifyThrottle,)

    @extend_schema(
        operation_id="verifyCertificate",
        summary="Verify a certificate by its serial number",
        description=(
            "Let a request through only while `status` is `active`. A suspended agent's certificate is on "
            "hold: `revoked`, with `revocation_reason` `certificateHold`, until the agent is reinstated. "
            "With `at`, also what the certificate was worth at that time, holds of then included."
        ),
        parameters=[SERIAL, AT],
        responses={
            200: enveloped(VerificationSerializer),
            **errors(400, 405, 429, 503, e404="Certificate not found"),
        },
    )
    def retrieve(self, request: Request, serial: str) -> Response:
        at = read_moment(request.query_params, "at")
        found = services.verify(serial=serial, at=at, now=now())
        return ok(shown_verification(found))


class MessageViewSet(UncachedViewSet):
    """The receiver's check of a signed message."""

    throttle_classes = (PublicThrottle,)

    @extend_schema(
        operation_id="verifyMessage",
        summary="Verify a message that an agent signed",
        description="200 for both outcomes: branch on `data.valid`.",
        request=VerifyMessageInputSerializer,
        responses={
            200: enveloped(MessageVerificationSerializer),
            **errors(*PUBLIC, e404="Certificate not found"),
        },
    )
    def create(self, request: Request) -> Response:
        asked = validated(VerifyMessageInputSerializer, request)
        outcome = services.verify_message(
            serial=asked["certificate_serial"],
            payload=asked["payload"],
            signature=asked["signature"],
            now=now(),
        )
        return ok(MessageVerificationSerializer(outcome).data)


class RevocationListViewSet(PublicViewSet):
    """Revocation lists, as published; nothing is signed in a request."""

    schema_tag = "Revocation lists and CAs"
    throttle_classes = (PublicThrottle,)

    @extend_schema(
        operation_id="getRevocationList",
        summary="The current certificate revocation list",
        description="DER by default and for `Accept: application/pkix-crl`, PEM for `Accept: text/plain`.",
        parameters=[ENVIRONMENT],
        responses={
            (200, DER_CRL): OpenApiTypes.BINARY,
            (200, TEXT): OpenApiTypes.STR,
            304: None,
            **errors(400, 405, 429, e503="The certificate revocation list has not been generated yet"),
        },
    )
    def current(self, request: Request) -> HttpResponse:
        with environments.use(_asked_environment(request)):
            return self._serve(request, _issuing_or_no_list())

    @extend_schema(
        operation_id="getRevocationListOfAuthority",
        summary="The revocation list of one CA",
        description="Certificates point here: `serial` is the CA's own serial number.",
        parameters=[SERIAL],
        responses={
            (200, DER_CRL): OpenApiTypes.BINARY,
            (200, TEXT): OpenApiTypes.STR,
            304: None,
            **errors(
                400,
                405,
                429,
                e404="Certificate authority not found",
                e503="The certificate revocation list has not been generated yet",
            ),
        },
    )
    def retrieve(self, request: Request, serial: str) -> HttpResponse:
        number = _parsed(serial)
        with environments.use(environment_of(number)):
            return self._serve(request, CertificateAuthority.objects.with_serial(number))

    @extend_schema(
        operation_id="getPartialRevocationList",
        summary="One shard of a CA's revocation list, or its delta",
        description=(
            "A certificate's CDP names its shard (a number). `delta` is what was revoked since the base list "
            "it names, and with the reason `removeFromCRL` what came off hold since; it adds to any full "
            "list that has not passed its next update."
        ),
        parameters=[SERIAL, PART],
        responses={
            (200, DER_CRL): OpenApiTypes.BINARY,
            (200, TEXT): OpenApiTypes.STR,
            304: None,
            **errors(
                400,
                405,
                429,
                e404="Revocation list not found",
                e503="The certificate revocation list has not been generated yet",
            ),
        },
    )
    def part(self, request: Request, serial: str, part: str) -> HttpResponse:
        number = _parsed(serial)
        with environments.use(environment_of(number)):
            authority = CertificateAuthority.objects.with_serial(number)
            return self._serve(request, authority, _scope_of(authority, part))

    def _serve(self, request: Request, authority: CertificateAuthority, scope: str = FULL) -> HttpResponse:
        latest = RevocationList.objects.latest_of(authority, scope)
        form = _form(request, LIST_FORMS, default="der")
        is_pem = form == "pem"
        name = authority.serial_number if scope == FULL else f"{authority.serial_number}-{scope}"
        document = Document(
            body=(lambda: to_pem(latest.der)) if is_pem else (lambda: latest.der),
            size=pem_size(latest.size) if is_pem else latest.size,
            content_type=f"{TEXT}; charset=utf-8" if is_pem else DER_CRL,
            etag=f"{name}-{latest.number}-{form}",
            modified=latest.this_update,
            filename=f"{name}.{'pem' if is_pem else 'crl'}",
        )
        return serve(request, document)


class AuthorityViewSet(PublicViewSet):
    """The CAs that stand behind the certificates."""

    schema_tag = "Revocation lists and CAs"
    throttle_classes = (PublicThrottle,)

    @extend_schema(
        operation_id="getAuthorities",
        summary="The CA certificates of an environment",
        description=(
            "JSON by default; `Accept: text/plain` gives the chain as PEM, issuing CA first, and "
            "`application/pkix-cert` the issuing CA as DER."
        ),
        parameters=[ENVIRONMENT],
        responses={
            (200, "application/json"): enveloped(ChainSerializer),
            (200, DER_CERTIFICATE): OpenApiTypes.BINARY,
            (200, TEXT): OpenApiTypes.STR,
            304: None,
            **errors(400, 405, 429, 503),
        },
    )
    def list(self, request: Request) -> HttpResponse:
        environment = _asked_environment(request)
        with environments.use(environment):
            issuing = CertificateAuthority.objects.issuing()
            known = list(CertificateAuthority.objects.order_by("-created_at", "-id"))
        chain = _pem(issuing) + b"".join(_pem(item) for item in known if item.id == issuing.parent_id)
        form = _form(request, {JSON: "json", **CERTIFICATE_FORMS}, default="json")
        if form != "json":
            return _serve_certificate(request, issuing, form, chain)
        moment = now()
        others = [item for item in known if item.id != issuing.id]
        body = {
            "environment": environment.value,
            "chain_pem": chain.decode("ascii"),
            "certificates": [_described(item, moment) for item in (issuing, *others)],
        }
        return ok(ChainSerializer(body).data)

    @extend_schema(
        operation_id="getAuthority",
        summary="One CA certificate",
        description="DER by default, PEM for `Accept: text/plain`; `serial` is the CA's own serial number.",
        parameters=[SERIAL],
        responses={
            (200, DER_CERTIFICATE): OpenApiTypes.BINARY,
            (200, TEXT): OpenApiTypes.STR,
            304: None,
            **errors(400, 405, 429, 503, e404="Certificate authority not found"),
        },
    )
    def retrieve(self, request: Request, serial: str) -> HttpResponse:
        number = _parsed(serial)
        with environments.use(environment_of(number)):
            authority = CertificateAuthority.objects.with_serial(number)
        form = _form(request, CERTIFICATE_FORMS, default="der")
        return _serve_certificate(request, authority, form, _pem(authority))


def _serve_certificate(
    request: Request, authority: CertificateAuthority, form: str, pem: bytes
) -> HttpResponse:
    is_pem = form == "pem"
    body = pem if is_pem else bytes(authority.certificate_der)
    document = Document(
        body=lambda: body,
        size=len(body),
        content_type=f"{TEXT}; charset=utf-8" if is_pem else DER_CERTIFICATE,
        etag=f"{authority.serial_number}-{form}",
        modified=authority.created_at,
        filename=f"{authority.serial_number}.{'pem' if is_pem else 'cer'}",
    )
    return serve(request, document)


def _described(authority: CertificateAuthority, moment: datetime) -> dict[str, Any]:
    certificate = _certificate(authority)
    names = ("role", "common_name", "serial_number", "not_before", "not_after", "certificate_url", "crl_url")
    return {
        **{name: getattr(authority, name) for name in names},
        "status": authority.state_at(moment),
        "subject": certificate.subject.rfc4514_string(),
        "sha256_fingerprint": certificate.fingerprint(hashes.SHA256()).hex(),
        "pem": certificate.public_bytes(Encoding.PEM).decode("ascii"),
    }


def _pem(authority: CertificateAuthority) -> bytes:
    return _certificate(authority).public_bytes(Encoding.PEM)


def _certificate(authority: CertificateAuthority) -> x509.Certificate:
    return x509.load_der_x509_certificate(bytes(authority.certificate_der))


def _issuing_or_no_list() -> CertificateAuthority:
    """The CA in service; without one there is no list either."""
    try:
        return CertificateAuthority.objects.issuing()
    except AuthorityMissing as error:
        raise ListNotGenerated() from error


def _parsed(serial: str) -> int:
    number = parse_serial(serial)
    if number is None:
        raise AuthorityNotFound()
    return number


def _scope_of(authority: CertificateAuthority, part: str) -> str:
    """The scope that the last step of an address names; raises `ListNotFound`."""
    if part == DELTA and authority.role == AuthorityRole.ISSUING:
        return DELTA
    if re.fullmatch(r"0|[1-9]\d{0,4}", part, re.ASCII) and int(part) < authority.crl_shards:
        return shard_name(int(part))
    raise ListNotFound()


def _asked_environment(request: Request) -> Environment:
    """The query's; without one the live environment, whatever key was sent along."""
    chosen = read_choice(request.query_params, "environment", [member.value for member in Environment])
    return Environment(chosen) if chosen else Environment.LIVE


def _form(request: Request, forms: Mapping[str, str], *, default: str) -> str:
    """The form that `Accept` wants most; the default for all else, as verifiers that ask oddly expect."""
    for wanted in accepted_types(request.headers.get("Accept", "")):
        if wanted in forms:
            return forms[wanted]
        if wanted in ("*/*", "application/*"):
            return default
        if wanted == "text/*":
            return forms[TEXT]
    return default
