"""Routes of delegation, of its OAuth endpoints and of trusted issuers."""

from typing import Any, Final

from django.urls import path

from delegation.issuers.views import TrustedIssuerViewSet
from delegation.oauth.views import MetadataViewSet, OAuthViewSet
from delegation.views import (
    AgentDelegationViewSet,
    DelegationViewSet,
    PublicDelegationViewSet,
    StatusListViewSet,
)

_METADATA = ".well-known/oauth-authorization-server"
_ISSUER: Final[dict[str, Any]] = {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}

urlpatterns = [
    path("v1/agents/<str:agent_id>/delegation", AgentDelegationViewSet.as_view({"post": "create"})),
    path("v1/delegation/verify", PublicDelegationViewSet.as_view({"post": "verify"})),
    path("v1/delegations", DelegationViewSet.as_view({"get": "list"})),
    path("v1/delegations/<str:token_id>", DelegationViewSet.as_view({"get": "retrieve"})),
    path("v1/delegations/<str:token_id>/revoke", DelegationViewSet.as_view({"post": "revoke"})),
    path("v1/status-lists/<str:list_id>", StatusListViewSet.as_view({"get": "retrieve"})),
    path(".well-known/jwks.json", PublicDelegationViewSet.as_view({"get": "jwks"})),
    path("oauth/token", OAuthViewSet.as_view({"post": "create"})),
    path("oauth/introspect", OAuthViewSet.as_view({"post": "introspect"})),
    path("oauth/revoke", OAuthViewSet.as_view({"post": "revoke"})),
    path(_METADATA, MetadataViewSet.as_view({"get": "retrieve"})),
    path(f"{_METADATA}/<path:path>", MetadataViewSet.as_view({"get": "of_path"})),
    path("v1/trusted-issuers", TrustedIssuerViewSet.as_view({"get": "list", "post": "create"})),
    path("v1/trusted-issuers/<str:issuer_id>", TrustedIssuerViewSet.as_view(_ISSUER)),
]
