"""The audit log's routes."""

from django.urls import path

from auditlog.views import AuditLogViewSet

urlpatterns = [path("v1/audit-log", AuditLogViewSet.as_view({"get": "list"}))]
