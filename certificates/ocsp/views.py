"""OCSP over HTTP (RFC 6960 appendix A)."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from certificates.ocsp import responders
from certificates.public.documents import CACHEABLE
from compliance.api.rest.schema import errors
from compliance.api.rest.views import PublicViewSet
from compliance.core.clock import now

REQUEST_TYPE, RESPONSE_TYPE = "application/ocsp-request", "application/ocsp-response"
DESCRIPTION = (
    "RFC 6960, with nonces as in RFC 9654. 200 for every answer that OCSP knows, its errors included: read "
    "`responseStatus`. Certificates that were never issued are `unknown`; those of other CAs, `unauthorized`."
)
RESPONSES: dict[Any, Any] = {(200, RESPONSE_TYPE): OpenApiTypes.BINARY, **errors(404, 405, 413, 429, 503)}


class OcspViewSet(PublicViewSet):
    schema_tag = "Revocation lists and CAs"
    ignores_unknown_parameters = True  # clients add what they like to the address in a certificate

    @extend_schema(
        operation_id="askOcsp",
        summary="Ask for the status of certificates by OCSP",
        description=DESCRIPTION,
        request={REQUEST_TYPE: OpenApiTypes.BINARY},
        responses=RESPONSES,
    )
    def ask(self, request: Request) -> HttpResponse:
        der, _ = responders.answer(request=request.body, now=now())
        return _response(der, "no-store")

    @extend_schema(
        operation_id="askOcspByAddress",
        summary="Ask for the status of certificates by OCSP, in the address",
        description=DESCRIPTION,
        parameters=[
            OpenApiParameter(
                "encoded",
                OpenApiTypes.STR,
                location=OpenApiParameter.PATH,
                description="The request in DER, as base64, percent-encoded",
            )
        ],
        responses=RESPONSES,
    )
    def ask_by_address(self, request: Request, encoded: str) -> HttpResponse:
        # Clients append "/" and the request, to an address with a slash at its end as well.
        der, is_shared = responders.answer(request=encoded.lstrip("/"), now=now())
        return _response(der, CACHEABLE if is_shared else "no-store")


def _response(der: bytes, cache_control: str) -> HttpResponse:
    response = HttpResponse(der, content_type=RESPONSE_TYPE)
    response["Cache-Control"] = cache_control
    response["X-Content-Type-Options"] = "nosniff"
    return response
