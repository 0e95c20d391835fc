"""`GET /v1/agents/{id}/attestation` as JSON, PDF and signed bundle, and the downloads of the console."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers
from rest_framework.response import Response

from agents.models import Agent
from auditlog.actors.requests import caller_of, user_of
from certificates.errors import MomentNotPast
from compliance.api.gate import Scope
from compliance.api.pagination import ok, read_moment
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import MOMENT
from compliance.api.rest.views import ApiViewSet, operation
from compliance.console.admin import RowPage, TenantScopedAdmin
from reports.bundles.archive import file_of
from reports.models import Report
from reports.serializers import ReportManifestSerializer, shown_manifest
from reports.standing.attestation import attest

PARAMETERS: Final = [
    OpenApiParameter("at", MOMENT, description="A past moment, from the registration on; now if omitted."),
]
REFUSALS: Final = {
    "e400": MomentNotPast.message,
    "e404": "Agent not found, or not registered at that time",
    "e503": "KMS signing service unavailable",
}


class AttestationSerializer(ReportManifestSerializer):
    """An attestation, and the signed manifest with its digest."""

    attestation = serializers.DictField(
        help_text="`report.json` of the manifest, in canonical JSON (RFC 8785)."
    )


def _attests(operation_id: str, summary: str, answer: Any, **described: Any) -> Any:
    described |= {"parameters": PARAMETERS, **REFUSALS}
    return operation(operation_id, summary, Scope.REPORTS_READ, answer, **described)


def _file_of(kind: str) -> dict[tuple[int, str], OpenApiResponse]:
    return {(200, f"application/{kind}"): OpenApiResponse(OpenApiTypes.BINARY, "The file")}


class AttestationViewSet(ApiViewSet):
    """How one agent stands or stood."""

    schema_tag = "Reports"

    @_attests(
        "getAttestation",
        "Attest how an agent stands or stood",
        AttestationSerializer,
        description=(
            "Identity, certificate, scope, owners, the risk of 30 days, incidents, and the provisions of the "
            "AI Act with the ids of the rows behind them; never a verdict. A member that the records do not "
            "tell any more is null and named in `gaps`. Signed as reports are; audited as `agent.attested`."
        ),
    )
    def retrieve(self, request: ApiRequest, agent_id: str) -> Response:
        found = _asked(request, agent_id, "json")
        return ok({**shown_manifest(found), "attestation": found.content})

    @_attests(
        "getAttestationPdf", "Attest how an agent stands or stood, as a PDF of one page", _file_of("pdf")
    )
    def pdf(self, request: ApiRequest, agent_id: str) -> HttpResponse:
        return file_of(_asked(request, agent_id, "pdf"), "pdf")

    @_attests("getAttestationBundle", "Attest it in a signed bundle, checked as a report's", _file_of("zip"))
    def bundle(self, request: ApiRequest, agent_id: str) -> HttpResponse:
        return file_of(_asked(request, agent_id, "zip"), "zip")


def _asked(request: ApiRequest, agent_id: str, kind: str) -> Report:
    at = read_moment(request.query_params, "at")
    return attest(agent_id=agent_id, at=at, kind=kind, **caller_of(request))


def _download(admin: TenantScopedAdmin, request: HttpRequest, agent: Agent) -> HttpResponse:
    return file_of(attest(agent_id=agent.id, at=None, kind="zip", **user_of(request, agent)), "zip")


ATTESTATION: Final = RowPage("attestation", "Attestation", "verified", _download)
"""The download of the bundle, with the PDF in it, from an agent's page."""
