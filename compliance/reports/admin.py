"""Reports in the console: officers request them, every member of the tenant reads them."""

from datetime import UTC, datetime, time, timedelta
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.html import format_html
from unfold.decorators import display
from unfold.widgets import UnfoldAdminDateWidget

from auditlog.actors.requests import actor_of, record_download
from auditlog.vocabulary import AuditAction
from compliance.console.access import OFFICERS
from compliance.console.admin import TenantScopedAdmin
from compliance.console.display import EMPTY, code, pretty_json, status_chip
from compliance.console.filters import ChoicesDropdownFilter, RangeDateTimeFilter, tenant_filter
from compliance.core.clock import now
from compliance.core.errors import ServiceError
from compliance.reports import services
from compliance.reports.content import pdf
from compliance.reports.models import Report
from compliance.reports.notifications import admin as notifications  # noqa: F401  (registers its page)
from compliance.reports.serializers import MAX_PERIOD
from compliance.reports.vocabulary import ReportStatus

DAY = timedelta(days=1)


class NewReportForm(forms.ModelForm):
    first_day = forms.DateField(widget=UnfoldAdminDateWidget, help_text="Included, from midnight UTC.")
    last_day = forms.DateField(widget=UnfoldAdminDateWidget, help_text="Included, until midnight UTC.")

    class Meta:
        model = Report
        fields = ("tenant", "type")

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        first, last = data.get("first_day"), data.get("last_day")
        if first is None or last is None:
            return data
        if last < first:
            self.add_error("last_day", "Must not be before the first day.")
        elif last - first >= MAX_PERIOD:
            self.add_error("last_day", f"The period exceeds {MAX_PERIOD.days} days.")
        elif first > now().date():
            self.add_error("first_day", "Must not be in the future.")
        return data

    def midnight_of(self, field: str) -> datetime:
        return datetime.combine(self.cleaned_data[field], time.min, UTC)


@admin.register(Report)
class ReportAdmin(TenantScopedAdmin):
    """Reports; a task generates them."""

    form = NewReportForm
    add_roles = OFFICERS
    list_display = ("period", "kind", "state", "tenant", "created_at", "completed_at")
    list_select_related = ("tenant",)
    list_filter = (
        ("type", ChoicesDropdownFilter),
        ("status", ChoicesDropdownFilter),
        tenant_filter(),
        ("created_at", RangeDateTimeFilter),
    )
    ordering = ("-created_at", "-id")
    fieldsets = (
        (None, {"fields": ("kind", "state", "tenant", "period", "agents", "downloads")}),
        ("Proof", {"fields": ("digest_code",)}),
        ("Times", {"fields": ("created_at", "started_at", "completed_at")}),
        ("Document", {"fields": ("document_json",)}),
    )
    add_fieldsets = ((None, {"fields": ("tenant", "type", "first_day", "last_day")}),)
    readonly_fields = ("kind", "state", "period", "agents", "downloads", "digest_code", "document_json")

    def get_queryset(self, request: HttpRequest) -> Any:
        """Defer the documents in the list: they may be large."""
        match = request.resolver_match
        is_list = match is not None and (match.url_name or "").endswith("changelist")
        rows = super().get_queryset(request)
        return rows.defer("document") if is_list else rows

    def save_model(self, request: HttpRequest, obj: Report, form: Any, change: bool) -> None:
        made = services.request_report(
            tenant_id=form.cleaned_data["tenant"].id,
            type=form.cleaned_data["type"],
            period_start=form.midnight_of("first_day"),
            period_end=form.midnight_of("last_day") + DAY,
            actor=actor_of(request),
            now=now(),
        )
        obj.pk, obj.period_start, obj.period_end = made.pk, made.period_start, made.period_end

    def get_urls(self) -> list[URLPattern]:
        found = super().get_urls()
        for kind in ("pdf", "json"):
            view = self.admin_site.admin_view(partial(self.download_view, kind=kind))
            found.insert(0, path(f"<path:object_id>/download.{kind}", view, name=f"reports_report_{kind}"))
        return found

    def download_view(self, request: HttpRequest, object_id: str, kind: str) -> HttpResponse:
        report = self.get_object(request, object_id)
        if report is None:
            return self.missing(request, object_id)
        try:
            ready = services.ready(report)
        except ServiceError as error:
            messages.error(request, error.message)
            return HttpResponseRedirect(self.row_url(report))
        record_download(
            request,
            action=AuditAction.REPORT_DOWNLOADED,
            tenant_id=ready.tenant_id,
            affected_id=ready.id,
            description=f"Report downloaded as {kind.upper()}",
            format=kind,
        )
        body = pdf.render(ready.content, digest=ready.digest) if kind == "pdf" else ready.document
        name = f"{ready.type}-{ready.period_start:%Y-%m-%d}-{ready.id}.{kind}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return HttpResponse(body, content_type=f"application/{kind}", headers=headers)

    @display(description="period", ordering="period_start")
    def period(self, report: Report) -> str:
        return f"{report.period_start:%Y-%m-%d %H:%M} to {report.period_end:%Y-%m-%d %H:%M}"

    kind = display(lambda self, report: report.get_type_display(), description="regulation", ordering="type")
    state = display(lambda self, report: status_chip(report.status), description="status", ordering="status")
    digest_code = display(lambda self, report: code(report.digest), description="SHA-256")

    @display(description="agents")
    def agents(self, report: Report) -> str:
        return "All of the tenant" if report.agent_ids is None else f"{len(report.agent_ids)} named agents"

    @display(description="download")
    def downloads(self, report: Report) -> str:
        if report.status != ReportStatus.READY:
            return EMPTY
        link = '<a class="text-link" href="../download.pdf">PDF</a> · <a class="text-link" href="{}">JSON</a>'
        return format_html(link, "../download.json")

    @display(description="document")
    def document_json(self, report: Report) -> str:
        return pretty_json(report.content) if report.status == ReportStatus.READY else EMPTY
