"""Webhooks: routes."""

from typing import Any

from django.urls import path

from webhooks.views import DeliveryViewSet, WebhookViewSet

_ONE: dict[str, Any] = {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}
_DELIVERIES = "v1/webhooks/<str:webhook_id>/deliveries"

urlpatterns = [
    path("v1/webhooks", WebhookViewSet.as_view({"get": "list", "post": "create"})),
    path("v1/webhooks/<str:webhook_id>", WebhookViewSet.as_view(_ONE)),
    path("v1/webhooks/<str:webhook_id>/test", WebhookViewSet.as_view({"post": "send_test"})),
    path("v1/webhooks/<str:webhook_id>/rotate-secret", WebhookViewSet.as_view({"post": "rotate_secret"})),
    path("v1/webhooks/<str:webhook_id>/recover", WebhookViewSet.as_view({"post": "recover"})),
    path(_DELIVERIES, DeliveryViewSet.as_view({"get": "list"})),
    path(f"{_DELIVERIES}/<str:delivery_id>/redeliver", DeliveryViewSet.as_view({"post": "redeliver"})),
]
