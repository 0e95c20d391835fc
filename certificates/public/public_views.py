"""The public endpoints: verification of certificates, CAs and revocation lists."""

import re
from datetime import datetime
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from certificates import serializers
from certificates.errors import AuthorityNotFound, ListNotGenerated
from certificates.lists.crl import DELTA, FULL, pem_size, shard_name, to_pem
from certificates.models import AuthorityRole, CertificateAuthority, RevocationList
from certificates.pki.serials import environment_of, parse_serial
from certificates.public.documents import JSON, PEM_FILE, TEXT, chosen_form, serve
from certificates.public.endpoints import VERIFY_CERTIFICATE
from compliance.api.pagination import ok, read_environment
from compliance.api.rest.endpoints import respond
from compliance.api.rest.schema import MOMENT, enveloped, errors
from compliance.api.rest.views import PublicViewSet
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.errors import NotFound

DER_CRL, DER_CERTIFICATE = "application/pkix-crl", "application/pkix-cert"
LIST_FORMS = {DER_CRL: "der", TEXT: "pem", PEM_FILE: "pem"}
CERTIFICATE_FORMS = {DER_CERTIFICATE: "der", TEXT: "pem", PEM_FILE: "pem"}

ENVIRONMENT = OpenApiParameter(
    "environment",
    OpenApiTypes.STR,
    enum=[member.value for member in Environment],
    description="`live` when omitted.",
)
AT = OpenApiParameter("at", MOMENT, description="A past ISO 8601 date-time, UTC where no zone is given.")
PART = OpenApiParameter(
    "part", OpenApiTypes.STR, location=OpenApiParameter.PATH, description="The number of a shard, or `delta`."
)
SERIAL = OpenApiParameter(
    "serial", OpenApiTypes.STR, OpenApiParameter.PATH, description="Hex in any case, with or without colons."
)

CERTIFICATE_RESPONSES: dict[Any, Any] = {
    (200, DER_CERTIFICATE): OpenApiTypes.BINARY,
    (200, TEXT): OpenApiTypes.STR,
    304: None,
}
LIST_RESPONSES: dict[Any, Any] = {
    (200, DER_CRL): OpenApiTypes.BINARY,
    (200, TEXT): OpenApiTypes.STR,
    304: None,
    **errors(400, 405, 429, e503="The certificate revocation list has not been generated yet"),
}


class UncachedViewSet(PublicViewSet):
    """Responses, errors included, that no cache may keep, so that a revocation shows at once."""

    schema_tag = "Verification"

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        response["Cache-Control"] = "no-store"
        return response


class VerifyViewSet(UncachedViewSet):
    bucket = "verify"

    @extend_schema(
        operation_id="verifyCertificate",
        summary="Verify a certificate by its serial number",
        description=(
            "Let a request through only while `status` is `active`. A suspended agent's certificate is on "
            "hold: `revoked`, with `revocation_reason` `certificateHold`, until the agent is reinstated; "
            "for good if the certificate ends first. "
            "With `at`, also what the certificate was worth at that time, holds of then included."
        ),
        parameters=[SERIAL, AT],
        responses={
            200: enveloped(serializers.VerificationSerializer),
            **errors(400, 405, 429, 503, e404="Certificate not found"),
        },
    )
    def retrieve(self, request: Request, serial: str) -> Response:
        return respond(VERIFY_CERTIFICATE, request, serial)


class RevocationListViewSet(PublicViewSet):
    schema_tag = "Revocation lists and CAs"

    @extend_schema(
        operation_id="getRevocationList",
        summary="The current certificate revocation list",
        description="DER by default and for `Accept: application/pkix-crl`, PEM for `Accept: text/plain`.",
        parameters=[ENVIRONMENT],
        responses=LIST_RESPONSES,
    )
    def current(self, request: Request) -> HttpResponse:
        with environments.use(read_environment(request.query_params)):
            authority = CertificateAuthority.objects.in_service().filter(role=AuthorityRole.ISSUING).first()
            if authority is None:
                raise ListNotGenerated()
            return self._serve(request, authority)

    @extend_schema(
        operation_id="getRevocationListOfAuthority",
        summary="The revocation list of one CA",
        description="Certificates point here: `serial` is the CA's own serial number.",
        parameters=[SERIAL],
        responses={**LIST_RESPONSES, **errors(e404="Certificate authority not found")},
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
        responses={**LIST_RESPONSES, **errors(e404="Revocation list not found")},
    )
    def part(self, request: Request, serial: str, part: str) -> HttpResponse:
        number = _parsed(serial)
        with environments.use(environment_of(number)):
            authority = CertificateAuthority.objects.with_serial(number)
            if part == DELTA and authority.role == AuthorityRole.ISSUING:
                return self._serve(request, authority, DELTA)
            if re.fullmatch(r"0|[1-9]\d{0,4}", part, re.ASCII) and int(part) < authority.crl_shards:
                return self._serve(request, authority, shard_name(int(part)))
        raise NotFound("Revocation list not found")

    def _serve(self, request: Request, authority: CertificateAuthority, scope: str = FULL) -> HttpResponse:
        latest = RevocationList.objects.latest_of(authority, scope)
        is_pem = chosen_form(request, LIST_FORMS, default="der") == "pem"
        return serve(
            request,
            body=lambda: to_pem(latest.der) if is_pem else latest.der,
            size=pem_size(latest.size) if is_pem else latest.size,
            name=authority.serial_number if scope == FULL else f"{authority.serial_number}-{scope}",
            version=f"-{latest.number}",
            modified=latest.this_update,
            kind=DER_CRL,
            suffix="crl",
            is_pem=is_pem,
        )


class AuthorityViewSet(PublicViewSet):
    schema_tag = "Revocation lists and CAs"

    @extend_schema(
        operation_id="getAuthorities",
        summary="The CA certificates of an environment",
        description=(
            "JSON by default; `Accept: text/plain` gives the chain as PEM, issuing CA first, and "
            "`application/pkix-cert` the issuing CA as DER."
        ),
        parameters=[ENVIRONMENT],
        responses={
            (200, "application/json"): enveloped(serializers.ChainSerializer),
            **CERTIFICATE_RESPONSES,
            **errors(400, 405, 429, 503),
        },
    )
    def list(self, request: Request) -> HttpResponse:
        environment = read_environment(request.query_params)
        with environments.use(environment):
            issuing = CertificateAuthority.objects.issuing()
            known = list(CertificateAuthority.objects.order_by("-created_at", "-id"))
        chain = _pem(issuing) + b"".join(_pem(item) for item in known if item.id == issuing.parent_id)
        form = chosen_form(request, {JSON: "json", **CERTIFICATE_FORMS}, default="json")
        if form != "json":
            return _serve_certificate(request, issuing, form, chain)
        moment = now()
        others = [item for item in known if item.id != issuing.id]
        body = {
            "environment": environment.value,
            "chain_pem": chain.decode("ascii"),
            "certificates": [_described(item, moment) for item in (issuing, *others)],
        }
        return ok(serializers.ChainSerializer(body).data)

    @extend_schema(
        operation_id="getAuthority",
        summary="One CA certificate",
        description="DER by default, PEM for `Accept: text/plain`; `serial` is the CA's own serial number.",
        parameters=[SERIAL],
        responses={
            **CERTIFICATE_RESPONSES,
            **errors(400, 405, 429, 503, e404="Certificate authority not found"),
        },
    )
    def retrieve(self, request: Request, serial: str) -> HttpResponse:
        number = _parsed(serial)
        with environments.use(environment_of(number)):
            authority = CertificateAuthority.objects.with_serial(number)
        form = chosen_form(request, CERTIFICATE_FORMS, default="der")
        return _serve_certificate(request, authority, form, _pem(authority))


def _serve_certificate(
    request: Request, authority: CertificateAuthority, form: str, pem: bytes
) -> HttpResponse:
    is_pem = form == "pem"
    body = pem if is_pem else bytes(authority.certificate_der)
    return serve(
        request,
        body=lambda: body,
        size=len(body),
        name=authority.serial_number,
        modified=authority.created_at,
        kind=DER_CERTIFICATE,
        suffix="cer",
        is_pem=is_pem,
    )


def _described(authority: CertificateAuthority, moment: datetime) -> dict[str, Any]:
    certificate = authority.as_issuer.certificate
    names = ("role", "common_name", "serial_number", "not_before", "not_after", "certificate_url", "crl_url")
    return {
        **{name: getattr(authority, name) for name in names},
        "status": authority.state_at(moment),
        "subject": certificate.subject.rfc4514_string(),
        "sha256_fingerprint": certificate.fingerprint(hashes.SHA256()).hex(),
        "pem": certificate.public_bytes(Encoding.PEM).decode("ascii"),
    }


def _pem(authority: CertificateAuthority) -> bytes:
    return authority.as_issuer.certificate.public_bytes(Encoding.PEM)


def _parsed(serial: str) -> int:
    number = parse_serial(serial)
    if number is None:
        raise AuthorityNotFound()
    return number
