"""`/v1/gateway/authorize` and `/v1/gateway/routes`."""

from typing import Any, ClassVar
from urllib.parse import quote

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from auditlog.actors.requests import caller_of
from compliance.api.gate import GateRequest, Scope
from compliance.api.pagination import ok
from compliance.api.rest.endpoints import respond
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import enveloped
from compliance.api.rest.views import ApiViewSet, operation, validated
from compliance.core import environments
from gateway import openapi, serializers, services
from gateway.endpoints import AUTHORIZE, gateway_key
from gateway.models import GatewayRoute
from gateway.serializers import GatewayRouteSerializer
from tenancy import keys
from tenancy.authentication import ApiKeyAuthentication

NOT_FOUND = "Gateway route not found"
METHODS = ("get", "post", "put", "patch", "delete", "head", "options")


class GatewayAuthentication(ApiKeyAuthentication):
    """The gateway's key, in a header of its own or in `Authorization`."""


class GatewayDecisionViewSet(ApiViewSet):
    """Decisions for gateways, in the environment of their key; no cache keeps one."""

    schema_tag = "Gateway"
    authentication_classes = (GatewayAuthentication,)
    bucket = "gateway"

    @staticmethod
    def presented_key(request: HttpRequest) -> str | None:
        return gateway_key(GateRequest.of(request))

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        named = keys.environment_of(gateway_key(GateRequest.of(request)))
        with environments.use(named or environments.current()):
            return super().dispatch(request, *args, **kwargs)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        response["Cache-Control"] = "no-store"
        return response

    @operation(
        "authorizeRequest",
        "Decide whether a request may pass a gateway",
        Scope.GATEWAY_AUTHORIZE,
        serializers.PassageSerializer,
        description=openapi.AUTHORIZE_TEXT,
        parameters=openapi.HEADERS,
        examples=[openapi.PASSAGE],
        e401="The token has expired",
        e403="Scope violation",
        e404=NOT_FOUND,
    )
    def authorize(self, request: ApiRequest) -> Response:
        return respond(AUTHORIZE, request)


class GatewayForwardViewSet(GatewayDecisionViewSet):
    """The same decision for gateways that ask with the client's own method, host and path (Envoy)."""

    http_method_names = list(METHODS)
    required_scopes: ClassVar = {"check": Scope.GATEWAY_AUTHORIZE}
    ignores_unknown_parameters = True  # they are those of the request that is decided about

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        found = super().initialize_request(request, *args, **kwargs)
        # REST framework calls OPTIONS "metadata", an action that needs no scope.
        self.action = "check"
        return found

    @extend_schema(exclude=True)
    def check(self, request: ApiRequest, target: str) -> Response:
        # What a client sent under these names does not count: here the request itself says it.
        path, query = quote(f"/{target}", safe="/:@!$&'()*+,;=~"), request._request.META["QUERY_STRING"]
        original = {
            "x-forwarded-method": request._request.method or "",
            "x-forwarded-uri": f"{path}?{query}" if query else path,
            "x-forwarded-host": request.headers.get("host", ""),
        }
        headers = {name.lower(): value for name, value in request.headers.items()}
        return respond(AUTHORIZE, request, headers={**headers, **original})


class GatewayRouteViewSet(ApiViewSet):
    """The routes of the tenant's gateways."""

    schema_tag = "Gateway"

    @operation(
        "createGatewayRoute",
        "Create a gateway route",
        Scope.GATEWAY_WRITE,
        GatewayRouteSerializer,
        status=201,
        request=serializers.CreateRouteSerializer,
        examples=[openapi.NEW_ROUTE, openapi.A_ROUTE],
        repeats=True,
        e409="The tenant has a gateway route of this name",
    )
    def create(self, request: ApiRequest) -> Response:
        fields = validated(serializers.CreateRouteSerializer, request)
        route = services.create(fields=fields, **caller_of(request))
        return ok(GatewayRouteSerializer(route).data, status=201)

    @operation(
        "listGatewayRoutes",
        "List gateway routes by name",
        Scope.GATEWAY_READ,
        enveloped(GatewayRouteSerializer, many=True),
    )
    def list(self, request: ApiRequest) -> Response:
        routes = GatewayRoute.objects.for_tenant(request.auth.tenant_id).order_by("name", "id")
        return ok(GatewayRouteSerializer(routes, many=True).data)

    @operation(
        "getGatewayRoute", "Fetch a gateway route", Scope.GATEWAY_READ, GatewayRouteSerializer, e404=NOT_FOUND
    )
    def retrieve(self, request: ApiRequest, route_id: str) -> Response:
        route = GatewayRoute.objects.for_tenant(request.auth.tenant_id).find(route_id)
        return ok(GatewayRouteSerializer(route).data)

    @operation(
        "updateGatewayRoute",
        "Edit a gateway route",
        Scope.GATEWAY_WRITE,
        GatewayRouteSerializer,
        description="A change counts within a second.",
        request=serializers.UpdateRouteSerializer,
        examples=[openapi.CHANGE, openapi.A_ROUTE],
        e404=NOT_FOUND,
        e409="The tenant has a gateway route of this name",
    )
    def partial_update(self, request: ApiRequest, route_id: str) -> Response:
        changes = validated(serializers.UpdateRouteSerializer, request)
        route = services.update(route_id=route_id, changes=changes, **caller_of(request))
        return ok(GatewayRouteSerializer(route).data)

    @operation(
        "deleteGatewayRoute",
        "Delete a gateway route",
        Scope.GATEWAY_WRITE,
        status=204,
        description="Within a second its gateway gets a 404, and so lets nothing pass.",
        e404=NOT_FOUND,
    )
    def destroy(self, request: ApiRequest, route_id: str) -> Response:
        services.delete(route_id=route_id, **caller_of(request))
        return Response(status=204)
