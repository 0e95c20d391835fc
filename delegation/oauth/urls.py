"""Routes of the OAuth endpoints."""

from django.urls import path

from delegation.oauth.metadata import MetadataViewSet
from delegation.oauth.token_endpoint import TokenViewSet

_METADATA = ".well-known/oauth-authorization-server"

urlpatterns = [
    path("oauth/token", TokenViewSet.as_view({"post": "create"})),
    path(_METADATA, MetadataViewSet.as_view({"get": "retrieve"})),
    path(f"{_METADATA}/<path:path>", MetadataViewSet.as_view({"get": "of_path"})),
]
