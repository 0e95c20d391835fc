"""`/v1/trusted-issuers`."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from auditlog.vocabulary import Actor
from compliance.api.idempotency import idempotent
from compliance.api.rest.permissions import Scope
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.responses import ok
from compliance.api.rest.schema import IDEMPOTENCY_KEY, KEYED, enveloped, errors
from compliance.api.rest.views import ApiViewSet, validated
from compliance.core.clock import now
from delegation.issuers import examples, serializers, services
from delegation.issuers.models import TrustedIssuer
from delegation.issuers.serializers import TrustedIssuerSerializer

NOT_FOUND = "Trusted issuer not found"


class TrustedIssuerViewSet(ApiViewSet):
    """The issuers whose ID tokens the tenant trusts, in the key's environment."""

    schema_tag = "Delegation"
    required_scopes: ClassVar = {
        **dict.fromkeys(("list", "retrieve"), Scope.ISSUERS_READ),
        **dict.fromkeys(("create", "partial_update", "destroy"), Scope.ISSUERS_WRITE),
    }

    @extend_schema(
        operation_id="createTrustedIssuer",
        summary="Trust an issuer of ID tokens",
        description=(
            "From then on `POST /oauth/token` takes its ID tokens for the word of who a human is. Keys come "
            "from `jwks`, from `jwks_uri`, or from the discovery document of the issuer; addresses must be "
            "https and public. No address is asked before the first token comes."
        ),
        request=serializers.CreateTrustedIssuerSerializer,
        parameters=[IDEMPOTENCY_KEY],
        examples=[examples.TRUST, examples.TRUSTED],
        responses={201: enveloped(TrustedIssuerSerializer), **errors(*KEYED, 409)},
    )
    @idempotent
    def create(self, request: ApiRequest) -> Response:
        fields = validated(serializers.CreateTrustedIssuerSerializer, request)
        return ok(TrustedIssuerSerializer(services.create(**fields, **_caller(request))).data, status=201)

    @extend_schema(
        operation_id="listTrustedIssuers",
        summary="List trusted issuers, newest first",
        responses={200: enveloped(TrustedIssuerSerializer, many=True), **errors(*KEYED)},
    )
    def list(self, request: ApiRequest) -> Response:
        rows = TrustedIssuer.objects.for_tenant(request.auth.tenant_id).newest_first()
        return ok(TrustedIssuerSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="getTrustedIssuer",
        summary="Fetch a trusted issuer",
        parameters=[examples.ISSUER_ID],
        responses={200: enveloped(TrustedIssuerSerializer), **errors(*KEYED, e404=NOT_FOUND)},
    )
    def retrieve(self, request: ApiRequest, issuer_id: str) -> Response:
        row = TrustedIssuer.objects.for_tenant(request.auth.tenant_id).find(issuer_id)
        return ok(TrustedIssuerSerializer(row).data)

    @extend_schema(
        operation_id="updateTrustedIssuer",
        summary="Edit a trusted issuer",
        parameters=[examples.ISSUER_ID],
        request=serializers.UpdateTrustedIssuerSerializer,
        examples=[examples.CHANGE],
        responses={200: enveloped(TrustedIssuerSerializer), **errors(*KEYED, e404=NOT_FOUND)},
    )
    def partial_update(self, request: ApiRequest, issuer_id: str) -> Response:
        changes = validated(serializers.UpdateTrustedIssuerSerializer, request)
        row = services.update(issuer_id=issuer_id, changes=changes, **_caller(request))
        return ok(TrustedIssuerSerializer(row).data)

    @extend_schema(
        operation_id="deleteTrustedIssuer",
        summary="Trust an issuer no more",
        description="Delegation tokens that it vouched for stay valid; revoke those that must not.",
        parameters=[examples.ISSUER_ID],
        responses={204: None, **errors(*KEYED, e404=NOT_FOUND)},
    )
    def destroy(self, request: ApiRequest, issuer_id: str) -> Response:
        services.delete(issuer_id=issuer_id, **_caller(request))
        return Response(status=204)


def _caller(request: ApiRequest) -> dict[str, Any]:
    """The arguments that every service takes."""
    return {"tenant_id": request.auth.tenant_id, "actor": Actor.api_key(request.auth.id), "now": now()}
