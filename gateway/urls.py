"""The gateway's routes."""

from typing import Any, Final

from django.urls import path

from gateway.access.views import AccessViewSet, AskPolicyViewSet, AuthzenConfigurationViewSet
from gateway.approvals.views import ApprovalViewSet
from gateway.views import METHODS, GatewayDecisionViewSet, GatewayForwardViewSet, GatewayRouteViewSet

_POLICY: Final[dict[str, Any]] = {"get": "retrieve", "put": "replace", "delete": "destroy"}

urlpatterns = [
    path("access/v1/evaluation", AccessViewSet.as_view({"post": "evaluate"})),
    path("access/v1/evaluations", AccessViewSet.as_view({"post": "evaluate_all"})),
    path(".well-known/authzen-configuration", AuthzenConfigurationViewSet.as_view({"get": "retrieve"})),
    path("v1/approval-policies", AskPolicyViewSet.as_view({"get": "list"})),
    path("v1/approval-policies/<str:applies_to>", AskPolicyViewSet.as_view(_POLICY)),
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
