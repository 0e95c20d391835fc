"""Routes of delegation, of its OAuth endpoints, of trusted issuers, of stops and of access reviews."""

from typing import Any, Final

from django.urls import path

from delegation.agent_keys.views import AgentKeyViewSet, KeyDirectoryViewSet
from delegation.issuers.views import TrustedIssuerViewSet
from delegation.oauth.views import MetadataViewSet, OAuthViewSet, TokenViewSet
from delegation.reviews.views import AccessReviewViewSet, OwnerViewSet
from delegation.stops.views import StopViewSet
from delegation.views import (
    AgentDelegationViewSet,
    DelegationViewSet,
    PublicDelegationViewSet,
    StatusListViewSet,
)

_METADATA = ".well-known/oauth-authorization-server"
_REVIEW: Final = "v1/access-reviews/<str:review_id>"
_ISSUER: Final[dict[str, Any]] = {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}

urlpatterns = [
    path("v1/agents/<str:agent_id>/delegation", AgentDelegationViewSet.as_view({"post": "create"})),
    path("v1/agents/<str:agent_id>/credential", AgentDelegationViewSet.as_view({"get": "credential"})),
    path("v1/agents/<str:agent_id>/keys", AgentKeyViewSet.as_view({"get": "list", "post": "create"})),
    path("v1/agents/<str:agent_id>/keys/<str:key_id>/revoke", AgentKeyViewSet.as_view({"post": "revoke"})),
    path("v1/key-directories/<str:tenant_id>", KeyDirectoryViewSet.as_view({"get": "retrieve"})),
    path("v1/delegation/verify", PublicDelegationViewSet.as_view({"post": "verify"})),
    path("v1/delegations", DelegationViewSet.as_view({"get": "list"})),
    path("v1/delegations/<str:token_id>", DelegationViewSet.as_view({"get": "retrieve"})),
    path("v1/delegations/<str:token_id>/revoke", DelegationViewSet.as_view({"post": "revoke"})),
    path("v1/status-lists/<str:list_id>", StatusListViewSet.as_view({"get": "retrieve"})),
    path(".well-known/jwks.json", PublicDelegationViewSet.as_view({"get": "jwks"})),
    path("oauth/token", TokenViewSet.as_view({"post": "create"})),
    path("oauth/introspect", OAuthViewSet.as_view({"post": "introspect"})),
    path("oauth/revoke", OAuthViewSet.as_view({"post": "revoke"})),
    path(_METADATA, MetadataViewSet.as_view({"get": "retrieve"})),
    path(f"{_METADATA}/<path:path>", MetadataViewSet.as_view({"get": "of_path"})),
    path("v1/trusted-issuers", TrustedIssuerViewSet.as_view({"get": "list", "post": "create"})),
    path("v1/trusted-issuers/<str:issuer_id>", TrustedIssuerViewSet.as_view(_ISSUER)),
    path("v1/stops", StopViewSet.as_view({"get": "list", "post": "create"})),
    path("v1/stops/<str:stop_id>", StopViewSet.as_view({"get": "retrieve"})),
    path("v1/stops/<str:stop_id>/release", StopViewSet.as_view({"post": "release"})),
    path("v1/stops/<str:stop_id>/receipt", StopViewSet.as_view({"get": "receipt"})),
    path("v1/owners/replace", OwnerViewSet.as_view({"post": "replace"})),
    path("v1/access-reviews", AccessReviewViewSet.as_view({"get": "list", "post": "create"})),
    path(_REVIEW, AccessReviewViewSet.as_view({"get": "retrieve", "patch": "partial_update"})),
    path(f"{_REVIEW}/items", AccessReviewViewSet.as_view({"get": "items", "post": "decide_all"})),
    path(f"{_REVIEW}/items/<str:agent_id>", AccessReviewViewSet.as_view({"post": "decide"})),
    path(f"{_REVIEW}/record", AccessReviewViewSet.as_view({"get": "record"})),
]
