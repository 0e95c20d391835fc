"""The audit log's routes; each environment's tree has a prefix of its own (C2SP tlog-tiles)."""

from django.urls import URLPattern, path

from auditlog.proving.views import BundleViewSet, ProofViewSet, TreeViewSet
from auditlog.views import AuditLogViewSet
from compliance.core.environments import Environment


def _tree(prefix: str, environment: Environment) -> list[URLPattern]:
    places = {name: name for name in ("checkpoint", "status", "keys", "consistency")}
    places["tile"] = "tile/<str:level>/<path:path>"
    bundles = BundleViewSet.as_view({"get": "bundle"}, environment=environment)
    return [
        path(f"{prefix}/tile/entries/<path:path>", bundles),
        *(
            path(f"{prefix}/{place}", TreeViewSet.as_view({"get": action}, environment=environment))
            for action, place in places.items()
        ),
    ]


urlpatterns = [
    path("v1/audit-log", AuditLogViewSet.as_view({"get": "list"})),
    path("v1/audit-log/export", AuditLogViewSet.as_view({"get": "export"})),
    *_tree("v1/audit-log", Environment.LIVE),
    *_tree("v1/audit-log/test", Environment.TEST),
    path("v1/audit-log/<str:entry_id>/proof", ProofViewSet.as_view({"get": "retrieve"})),
]
