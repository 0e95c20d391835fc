"""Routes of the OAuth endpoints."""

from django.urls import path

from delegation.oauth.metadata import MetadataViewSet
from delegation.oauth.status_views import TokenStatusViewSet
from delegation.oauth.token_endpoint import TokenViewSet

_METADATA = ".well-known/oauth-authorization-server"

urlpatterns = [
    path("oauth/token", TokenViewSet.as_view({"post": "create"})),
    path("oauth/introspect", TokenStatusViewSet.as_view({"post": "introspect"})),
    path("oauth/revoke", TokenStatusViewSet.as_view({"post": "revoke"})),
    path(_METADATA, MetadataViewSet.as_view({"get": "retrieve"})),
    path(f"{_METADATA}/<path:path>", MetadataViewSet.as_view({"get": "of_path"})),
]
