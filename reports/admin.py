"""Reports and their schedules in the console: officers request them, all members of the tenant read them."""

from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from unfold.decorators import display

from agents.admin import AgentAdmin
from auditlog.actors.requests import actor_of, record_taken
from auditlog.vocabulary import AuditAction
from compliance.console.access import OFFICERS
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.admin import AUDIT_TRAIL, RelatedLink, TenantScopedAdmin
from compliance.console.display import EMPTY, code, column, link, pretty_json, status_chip
from compliance.console.filters import ChoicesDropdownFilter, RangeDateTimeFilter, TenantFilter
from compliance.console.navigation import NavigationLine
from compliance.core.clock import now
from compliance.core.errors import ServiceError
from incidents.models import Incident
from reports import scheduling, services
from reports.bundles.archive import file_of
from reports.forms import NewReportForm, NewScheduleForm
from reports.models import Report, ReportSchedule
from reports.notifications.console import DraftingIncidentAdmin
from reports.periods import DAY, following, in_words
from reports.querysets import MAX_ATTEMPTS
from reports.standing.views import ATTESTATION
from reports.vocabulary import Cadence, ReportStatus


def _retry(call: ActionCall) -> str:
    services.retry(report=call.row, actor=actor_of(call.request), now=call.now)
    return "The report was requested again."


def _end(call: ActionCall) -> str:
    scheduling.end_schedule(schedule=call.row, actor=actor_of(call.request), now=call.now)
    return "The schedule has ended; its reports stay."


RETRY = ConfirmedAction(
    "retry",
    "Generate again",
    "refresh",
    "The report is generated again, from the records as they are now.",
    _retry,
    is_offered=lambda report: report.status == ReportStatus.FAILED,
    form_class=forms.Form,
)
END = ConfirmedAction(
    "end",
    "End the schedule",
    "event_busy",
    "No further report is requested. The reports that exist stay.",
    _end,
    is_offered=lambda schedule: schedule.ended_at is None,
    form_class=forms.Form,
    is_destructive=True,
)


def _live(report: Report, part: str, shown: str) -> str:
    """Return a part of the page that `report-progress.js` keeps up to date until the report is over."""
    if report.status in (ReportStatus.READY, ReportStatus.FAILED):
        return shown
    url = reverse("admin:reports_report_progress", args=[report.pk])
    live = '<span role="status" data-progress="{}" data-part="{}">{}</span>'
    return format_html(live, url, part, shown)


def _state(report: Report) -> str:
    chip = status_chip(report.status)
    if report.status == ReportStatus.GENERATING and report.started_at is not None:
        attempt = f"attempt {report.attempts} of {MAX_ATTEMPTS}"
        return format_html("{} since {} UTC, {}", chip, f"{report.started_at:%H:%M:%S}", attempt)
    return chip


def _downloads(report: Report) -> str:
    if report.status != ReportStatus.READY:
        return EMPTY
    kinds = {"pdf": "PDF", "json": "JSON", **({"zip": "Signed bundle"} if report.manifest else {})}
    links = (
        (link(label, reverse(f"admin:reports_report_{kind}", args=[report.pk])),)
        for kind, label in kinds.items()
    )
    return format_html_join(" · ", "{}", links)


@admin.register(Report)
class ReportAdmin(TenantScopedAdmin):
    """Reports; a task generates them, and a script keeps the page of an unfinished one up to date."""

    navigation = NavigationLine("Evidence", 3, "Reports", "summarize")
    form = NewReportForm
    add_roles = OFFICERS
    adding = "Request report"
    confirmed_actions = (RETRY,)
    list_display = ("span", "kind", "state", "tenant", "created_at", "completed_at")
    list_select_related = ("tenant",)
    list_filter = (
        ("type", ChoicesDropdownFilter),
        ("status", ChoicesDropdownFilter),
        TenantFilter,
        ("created_at", RangeDateTimeFilter),
    )
    fieldsets = (
        (None, {"fields": ("kind", "state", "tenant", "span", "agents", "downloads", "schedule_name")}),
        ("Proof", {"fields": ("digest_code",)}),
        ("Times", {"fields": ("created_at", "started_at", "completed_at")}),
        ("Document", {"fields": ("document_json",)}),
    )
    add_fieldsets = ((None, {"fields": ("tenant", "type", "period", "first_day", "last_day")}),)

    class Media:
        js = ("console/report-progress.js",)

    def get_queryset(self, request: HttpRequest) -> Any:
        """Defer the documents in the list: they may be large."""
        match = request.resolver_match
        is_list = match is not None and (match.url_name or "").endswith("changelist")
        rows = super().get_queryset(request)
        return rows.defer("document", "pdf", "evidence", "manifest") if is_list else rows

    def save_model(self, request: HttpRequest, obj: Report, form: Any, change: bool) -> None:
        start, end = form.span()
        made = services.request_report(
            tenant_id=form.cleaned_data["tenant"].id,
            type=form.cleaned_data["type"],
            period_start=start,
            period_end=end,
            actor=actor_of(request),
            now=now(),
        )
        obj.pk, obj.period_start, obj.period_end = made.pk, made.period_start, made.period_end

    def response_add(self, request: HttpRequest, obj: Report, post_url_continue: Any = None) -> HttpResponse:
        """Show the report's page, which follows its progress."""
        messages.success(request, "The report was requested.")
        return HttpResponseRedirect(self.row_url(obj))

    def get_urls(self) -> list[URLPattern]:
        found = super().get_urls()
        for kind in ("pdf", "json", "zip"):
            view = self.admin_site.admin_view(partial(self.download_view, kind=kind))
            found.insert(0, path(f"<path:object_id>/download.{kind}", view, name=f"reports_report_{kind}"))
        return [self.row_page("progress", self.progress_view), *found]

    def progress_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Answer what the report's page shows of its progress, for the page's script."""
        report = self.get_object(request, unquote(object_id))
        if report is None:
            return self.missing(request, object_id)
        is_over = report.status in (ReportStatus.READY, ReportStatus.FAILED)
        shown = {"state": _state(report), "downloads": _downloads(report)}
        return JsonResponse({"is_over": is_over, **shown})

    def download_view(self, request: HttpRequest, object_id: str, kind: str) -> HttpResponse:
        report = self.get_object(request, object_id)
        if report is None:
            return self.missing(request, object_id)
        try:
            ready = services.signed(report) if kind == "zip" else services.ready(report)
        except ServiceError as error:
            messages.error(request, error.message)
            return HttpResponseRedirect(self.row_url(report))
        record_taken(
            actor=actor_of(request),
            action=AuditAction.REPORT_DOWNLOADED,
            of=ready,
            description=f"Report downloaded as {kind.upper()}",
            format=kind,
        )
        return file_of(ready, kind)

    span = column(
        "period", lambda report: in_words(report.period_start, report.period_end), ordering="period_start"
    )
    kind = column("regulation", lambda report: report.get_type_display(), ordering="type")
    schedule_name = column("schedule", lambda report: report.schedule or EMPTY)
    digest_code = column("SHA-256", lambda report: code(report.digest))
    agents = column(
        "agents",
        lambda one: "All of the tenant" if one.agent_ids is None else f"{len(one.agent_ids)} named agents",
    )
    document_json = column(
        "document", lambda one: pretty_json(one.content) if one.status == ReportStatus.READY else EMPTY
    )
    state = column("status", lambda report: _live(report, "state", _state(report)), ordering="status")
    downloads = column("download", lambda report: _live(report, "downloads", _downloads(report)))


@admin.register(ReportSchedule)
class ReportScheduleAdmin(TenantScopedAdmin):
    """Schedules: a report of each month or quarter, an hour after its end."""

    navigation = NavigationLine("Evidence", 4, "Report schedules", "event_repeat")
    form = NewScheduleForm
    add_roles = OFFICERS
    confirmed_actions = (END,)
    related_links = (
        RelatedLink("Reports", "summarize", "reports_report", "schedule__id__exact"),
        AUDIT_TRAIL,
    )
    list_display = ("kind", "often", "state", "tenant", "next_period", "created_at")
    list_select_related = ("tenant",)
    list_filter = (("type", ChoicesDropdownFilter), ("cadence", ChoicesDropdownFilter), TenantFilter)
    fieldsets = (
        (None, {"fields": ("kind", "often", "state", "tenant", "next_period", "created_at", "ended_at")}),
    )
    add_fieldsets = ((None, {"fields": ("tenant", "type", "cadence")}),)

    kind = column("regulation", lambda row: row.get_type_display(), ordering="type")
    often = column("cadence", lambda row: row.get_cadence_display(), ordering="cadence")
    state = column("status", lambda row: status_chip("ended" if row.ended_at else "active"))

    @display(description="next period", ordering="next_start")
    def next_period(self, schedule: ReportSchedule) -> str:
        if schedule.ended_at is not None:
            return EMPTY
        end = following(Cadence(schedule.cadence), schedule.next_start)
        return f"{schedule.next_start:%Y-%m-%d} to {end - DAY:%Y-%m-%d}"

    def save_model(self, request: HttpRequest, obj: ReportSchedule, form: Any, change: bool) -> None:
        made = scheduling.create_schedule(
            tenant_id=form.cleaned_data["tenant"].id,
            type=form.cleaned_data["type"],
            cadence=form.cleaned_data["cadence"],
            actor=actor_of(request),
            now=now(),
        )
        obj.pk = made.pk


admin.site.register(Incident, DraftingIncidentAdmin)
AgentAdmin.row_pages = (*AgentAdmin.row_pages, ATTESTATION)
