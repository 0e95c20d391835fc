"""`GET /metrics`: the metrics of all processes of this machine or container, for who has the token."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt

from compliance.api.exceptions import error_response, not_found
from compliance.core.clock import now
from compliance.observing import exposition, metrics
from compliance.ops.gauges import StoredState


@csrf_exempt  # Another method is refused below; Django's check would answer it first, as a page.
@never_cache
def metrics_view(request: HttpRequest) -> HttpResponse:
    """404 without METRICS_TOKEN or METRICS_DIR, as for an unknown path; 401 without the token."""
    if not settings.METRICS_TOKEN or not metrics.is_shared:
        return not_found(request)
    if request.method not in ("GET", "HEAD"):
        return error_response(request, 405, "Method not allowed", {"Allow": "GET, HEAD"})
    if not exposition.is_authorized(request.headers.get("Authorization", "")):
        return error_response(
            request, 401, "Missing or invalid token", {"WWW-Authenticate": 'Bearer realm="metrics"'}
        )
    return HttpResponse(exposition.exposed([StoredState(now=now())]), content_type=exposition.CONTENT_TYPE)
