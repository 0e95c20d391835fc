"""`POST /v1/events`, and reading one row, the plain way."""

import os
from typing import Any
from uuid import UUID

from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.utils import timezone
from rest_framework import generics, serializers

from bench.rulers.plain.models import PlainCertificate, PlainEvent

TENANT = UUID(os.environ.get("RULER_TENANT", str(UUID(int=0))))


class PlainEventSerializer(serializers.ModelSerializer[PlainEvent]):
    """What is sent and what is answered."""

    class Meta:
        model = PlainEvent
        fields = [
            *("id", "agent_id", "action_type", "risk_score", "risk_band", "occurred_at", "details"),
            *("session_id", "chain_id"),
        ]
        read_only_fields = ["id", "risk_score", "risk_band"]
        extra_kwargs = {"occurred_at": {"required": False}}


class PlainEventView(generics.CreateAPIView[PlainEvent]):
    """Validate, create, serialize."""

    queryset = PlainEvent._default_manager.all()
    serializer_class = PlainEventSerializer

    def perform_create(self, serializer: Any) -> None:
        now = timezone.now()
        occurred_at = serializer.validated_data.get("occurred_at", now)
        serializer.save(tenant_id=TENANT, received_at=now, occurred_at=occurred_at)


def row(request: HttpRequest, serial: str) -> JsonResponse:
    """One certificate's row as JSON."""
    rows = PlainCertificate._default_manager.filter(serial_number=serial)
    return JsonResponse({"data": rows.values("serial_number", "status", "agent_id", "issued_at").get()})


urlpatterns = [
    path("v1/events", PlainEventView.as_view()),
    path("row/<str:serial>", row),
]
