"""The System page, for operators: what the doctor finds in the environment."""

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from compliance.console.access import access_of
from compliance.console.display import chip, visible
from compliance.core.clock import now
from ops import doctor

QUICK = frozenset(
    {"database", "redis", "hsm", "hsm parts", "key pool", "workers and beat", "webhook senders", "audit log"}
    | {"audit log sealing", "certificate authorities", "revocation lists"}
)
"""The checks that opening the page runs; a click runs all."""


@require_http_methods(["GET", "HEAD", "POST"])
def system_page(request: HttpRequest) -> HttpResponse:
    """Show the quick checks of the environment, or on a POST all; repair nothing."""
    access = access_of(request)
    if not access.is_operator:
        raise PermissionDenied
    is_whole = request.method == "POST"
    findings = doctor.examine(
        chosen=[access.environment], fix=False, now=now(), only=None if is_whole else QUICK
    )
    context = {
        **admin.site.each_context(request),
        "title": "System",
        "is_whole": is_whole,
        "findings": [
            {
                "check": finding.check,
                "chip": chip("ok", "success") if finding.ok else chip("wrong", "danger"),
                "detail": visible(finding.detail),
                "remedy": finding.remedy,
            }
            for finding in sorted(findings, key=lambda finding: finding.ok)
        ],
        "wrong": sum(not finding.ok for finding in findings),
        "system_url": reverse("console_system"),
    }
    return TemplateResponse(request, "admin/system.html", context)
