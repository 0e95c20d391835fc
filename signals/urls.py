"""Signals: routes."""

from typing import Any

from django.urls import path

from signals.views import StreamStatusViewSet, StreamViewSet, TransmitterViewSet

_STREAMS: dict[str, Any] = {
    "get": "retrieve",
    "post": "create",
    "patch": "partial_update",
    "delete": "destroy",
}

urlpatterns = [
    path("v1/ssf/streams", StreamViewSet.as_view(_STREAMS)),
    path("v1/ssf/streams/<str:stream_id>/poll", StreamViewSet.as_view({"post": "poll"})),
    path("v1/ssf/status", StreamStatusViewSet.as_view({"get": "retrieve", "post": "change"})),
    path("v1/ssf/verify", StreamStatusViewSet.as_view({"post": "verify"})),
    path(".well-known/ssf-configuration", TransmitterViewSet.as_view({"get": "configuration"})),
]
