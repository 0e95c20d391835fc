"""The page itself, and the doctor's, both for operators."""

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe
from redis.exceptions import RedisError

from compliance.console.access import access_of
from compliance.console.display import EMPTY, chip, visible
from compliance.core.clock import now
from compliance.ops import doctor
from compliance.ops.system import parts
from compliance.serving.traffic import BOUNDS_MS, HOUR, Kind, KindTraffic, last_hour

KINDS = {
    Kind.EVENTS: "Events reported",
    Kind.VERIFY: "Verifications",
    Kind.API: "Other requests of the API",
    Kind.CONSOLE: "Console",
}


@require_safe
def system_page(request: HttpRequest) -> HttpResponse:
    """Show the parts of the environment, and the last hour of all web workers."""
    _require_operator(request)
    moment = now()
    context = {
        **admin.site.each_context(request),
        "title": "System",
        "parts": [(part, _state_chip(part.problem)) for part in parts.look(moment)],
        "traffic": _traffic(moment),
        "doctor_url": reverse("console_doctor"),
    }
    return TemplateResponse(request, "admin/system/system.html", context)


@require_POST
def doctor_page(request: HttpRequest) -> HttpResponse:
    """Run the doctor's checks of the environment, without repairs."""
    _require_operator(request)
    environment = access_of(request).environment
    findings = doctor.examine(chosen=[environment], fix=False, now=now())
    context = {
        **admin.site.each_context(request),
        "title": "Doctor",
        "findings": [
            {
                "check": finding.check,
                "chip": chip("ok", "success") if finding.ok else chip("wrong", "danger"),
                "detail": "" if finding.ok else visible(finding.detail),
                "remedy": finding.remedy,
            }
            for finding in sorted(findings, key=lambda finding: finding.ok)
        ],
        "wrong": sum(not finding.ok for finding in findings),
        "system_url": reverse("console_system"),
        "doctor_url": reverse("console_doctor"),
    }
    return TemplateResponse(request, "admin/system/doctor.html", context)


def _require_operator(request: HttpRequest) -> None:
    if not access_of(request).is_operator:
        raise PermissionDenied


def _state_chip(problem: str) -> str:
    return chip("attention", "danger") if problem else chip("ok", "success")


def _traffic(moment: datetime) -> list[dict[str, Any]] | None:
    """Return a row for each kind; None if Redis does not answer."""
    try:
        return [_row(found) for found in last_hour(now=moment)]
    except (RedisError, OSError):
        return None


def _row(found: KindTraffic) -> dict[str, Any]:
    return {
        "name": KINDS[found.kind],
        "requests": f"{found.requests:,}",
        "mean": f"{found.requests / (HOUR * 60):.2f}",
        "busiest": f"{max(found.by_minute) / 60:.2f}",
        "half": _within(found, 0.5),
        "most": _within(found, 0.99),
        "errors": found.errors,
    }


def _within(found: KindTraffic, share: float) -> str:
    if not found.requests:
        return EMPTY
    bound = found.quantile_ms(share)
    return f"within {bound:,} ms" if bound else f"over {BOUNDS_MS[-1]:,} ms"
