"""The gateway's routes."""

from django.urls import path

from gateway.approvals.views import ApprovalViewSet
from gateway.views import (
    METHODS,
    GatewayDecisionViewSet,
    GatewayForwardViewSet,
    GatewayRouteViewSet,
)

urlpatterns = [
    path("v1/gateway/authorize", GatewayDecisionViewSet.as_view({"get": "authorize"})),
    path(
        "v1/gateway/authorize/",
        GatewayForwardViewSet.as_view(dict.fromkeys(METHODS, "check")),
        {"target": ""},
    ),
    path(
        "v1/gateway/authorize/<path:target>",
        GatewayForwardViewSet.as_view(dict.fromkeys(METHODS, "check")),
    ),
    path("v1/gateway/routes", GatewayRouteViewSet.as_view({"get": "list", "post": "create"})),
    path(
        "v1/gateway/routes/<str:route_id>",
        GatewayRouteViewSet.as_view({"get": "retrieve", "patch": "partial_update", "delete": "destroy"}),
    ),
    path("v1/approvals", ApprovalViewSet.as_view({"get": "list", "post": "create"})),
    path("v1/approvals/<str:approval_id>", ApprovalViewSet.as_view({"get": "retrieve"})),
]
