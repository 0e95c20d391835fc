"""`/v1/trusted-issuers`."""

from typing import Any

from drf_spectacular.utils import OpenApiExample
from rest_framework.response import Response

from auditlog.actors.requests import caller_of
from compliance.api.gate import Scope
from compliance.api.pagination import ok
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import enveloped
from compliance.api.rest.views import ApiViewSet, operation, validated
from delegation.issuers import serializers, services
from delegation.issuers.models import TrustedIssuer
from delegation.issuers.serializers import TrustedIssuerSerializer

_TRUST: dict[str, Any] = {
    "issuer": "https://login.example.com",
    "audiences": ["research-app"],
    "algorithms": ["RS256"],
    "subject_claim": "email",
    "required_claims": {"groups": ["traders"]},
    "max_age_seconds": 900,
}
_SHOWN: dict[str, Any] = {
    "id": "019a9f5e-7a10-7b20-8c30-4d5e6f708192",
    **_TRUST,
    "jwks_uri": None,
    "jwks": None,
    "active": True,
    "created_at": "2026-11-20T09:00:00Z",
    "updated_at": "2026-11-20T09:00:00Z",
}
TRUST = OpenApiExample("A trusted issuer", request_only=True, value=_TRUST)
CHANGE = OpenApiExample("Other audiences", request_only=True, value={"audiences": ["research-app", "desk"]})
TRUSTED = OpenApiExample("Trusted", response_only=True, status_codes=["201"], value={"data": _SHOWN})
NOT_FOUND = "Trusted issuer not found"


class TrustedIssuerViewSet(ApiViewSet):
    """The issuers whose ID tokens the tenant trusts, in the key's environment."""

    schema_tag = "Delegation"

    @operation(
        "createTrustedIssuer",
        "Trust an issuer of ID tokens",
        Scope.ISSUERS_WRITE,
        TrustedIssuerSerializer,
        status=201,
        description=(
            "From then on `POST /oauth/token` takes its ID tokens for the word of who a human is. Keys come "
            "from `jwks`, from `jwks_uri`, or from the discovery document of the issuer; addresses must be "
            "https and public. No address is asked before the first token comes."
        ),
        request=serializers.CreateTrustedIssuerSerializer,
        examples=[TRUST, TRUSTED],
        repeats=True,
    )
    def create(self, request: ApiRequest) -> Response:
        fields = validated(serializers.CreateTrustedIssuerSerializer, request)
        return ok(TrustedIssuerSerializer(services.create(**fields, **caller_of(request))).data, status=201)

    @operation(
        "listTrustedIssuers",
        "List trusted issuers, newest first",
        Scope.ISSUERS_READ,
        enveloped(TrustedIssuerSerializer, many=True),
    )
    def list(self, request: ApiRequest) -> Response:
        rows = TrustedIssuer.objects.for_tenant(request.auth.tenant_id).newest_first()
        return ok(TrustedIssuerSerializer(rows, many=True).data)

    @operation(
        "getTrustedIssuer",
        "Fetch a trusted issuer",
        Scope.ISSUERS_READ,
        TrustedIssuerSerializer,
        e404=NOT_FOUND,
    )
    def retrieve(self, request: ApiRequest, issuer_id: str) -> Response:
        row = TrustedIssuer.objects.for_tenant(request.auth.tenant_id).find(issuer_id)
        return ok(TrustedIssuerSerializer(row).data)

    @operation(
        "updateTrustedIssuer",
        "Edit a trusted issuer",
        Scope.ISSUERS_WRITE,
        TrustedIssuerSerializer,
        request=serializers.UpdateTrustedIssuerSerializer,
        examples=[CHANGE],
        e404=NOT_FOUND,
    )
    def partial_update(self, request: ApiRequest, issuer_id: str) -> Response:
        changes = validated(serializers.UpdateTrustedIssuerSerializer, request)
        row = services.update(issuer_id=issuer_id, changes=changes, **caller_of(request))
        return ok(TrustedIssuerSerializer(row).data)

    @operation(
        "deleteTrustedIssuer",
        "Trust an issuer no more",
        Scope.ISSUERS_WRITE,
        status=204,
        description="Delegation tokens that it vouched for stay valid; revoke those that must not.",
        e404=NOT_FOUND,
    )
    def destroy(self, request: ApiRequest, issuer_id: str) -> Response:
        services.delete(issuer_id=issuer_id, **caller_of(request))
        return Response(status=204)
