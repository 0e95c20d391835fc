"""Routes of trusted issuers."""

from typing import Any

from django.urls import path

from delegation.issuers.views import TrustedIssuerViewSet

_ONE: dict[str, Any] = {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}

urlpatterns = [
    path("v1/trusted-issuers", TrustedIssuerViewSet.as_view({"get": "list", "post": "create"})),
    path("v1/trusted-issuers/<str:issuer_id>", TrustedIssuerViewSet.as_view(_ONE)),
]
