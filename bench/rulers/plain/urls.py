"""Reading one row, the plain way."""

from django.http import HttpRequest, JsonResponse
from django.urls import path

from bench.rulers.plain.models import PlainCertificate


def row(request: HttpRequest, serial: str) -> JsonResponse:
    """One certificate's row as JSON."""
    rows = PlainCertificate._default_manager.filter(serial_number=serial)
    return JsonResponse({"data": rows.values("serial_number", "status", "agent_id", "issued_at").get()})


urlpatterns = [path("row/<str:serial>", row)]
