"""Approvals in the console: what waits, decided in place by officers, and what was decided."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse

from auditlog.actors.names import names_of
from auditlog.actors.requests import user_of
from compliance.console.access import OFFICERS, access_of
from compliance.console.admin import AUDIT_TRAIL, RelatedLink, TenantScopedAdmin
from compliance.console.display import EMPTY, chip, code, column, pretty_json, status_chip, visible
from compliance.console.navigation import NavigationLine
from compliance.core.clock import now
from compliance.core.errors import ServiceError
from compliance.core.identifiers import parse_id
from gateway.approvals import page, services
from gateway.approvals.models import MAX_NOTE_LENGTH, Approval, ApprovalQuerySet
from people.doors.second_factor import is_shown

MOST_COUNTED = 99


class ApprovalDecisionForm(forms.Form):
    """A note on the decision."""

    note = forms.CharField(max_length=MAX_NOTE_LENGTH, required=False)


def _decided(approval: Approval) -> str:
    by = approval.decided_by
    return visible(names_of([by]).get(by, by)) if by else EMPTY


@admin.register(Approval)
class ApprovalAdmin(TenantScopedAdmin):
    """The decisions that wait, in place of a list; a row's own page shows what became of it."""

    navigation = NavigationLine("Agents", 0, "Approvals", "approval")
    secret_fields = frozenset({"receipt", "owner_digest"})
    related_links = (
        RelatedLink("Agent", "smart_toy", "agents_agent", "id__exact", lambda row: row.agent_id),
        AUDIT_TRAIL,
    )
    list_select_related = ("tenant",)
    fieldsets = (
        (None, {"fields": ("action_chip", "state", "risk", "agent_shown", "tenant", "shown_details")}),
        ("Decision", {"fields": ("by", "decided_at", "shown_note", "used_at")}),
        ("Life", {"fields": ("identifier", "requested_at", "expires_at", "act")}),
    )
    readonly_fields = ()

    action_chip = column("action", lambda row: chip(row.action_name, verbatim=True))
    state = column("status", lambda row: status_chip(row.status_at(now())))
    risk = column("risk", lambda row: page.risk_chip(row) or EMPTY)
    agent_shown = column("agent", lambda row: visible(row.agent_name))
    shown_details = column("details", lambda row: pretty_json(row.details))
    by = column("by", _decided)
    shown_note = column("note", lambda row: visible(row.note) or EMPTY)
    act = column("action hash", lambda row: code(row.action_hash))

    def get_queryset(self, request: HttpRequest) -> ApprovalQuerySet:
        found: ApprovalQuerySet = super().get_queryset(request)  # type: ignore[assignment]
        return found

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            return self._decide(request)
        rows = self.get_queryset(request).select_related("tenant")
        context = {**self.admin_site.each_context(request), **page.context_of(request, rows, now())}
        return TemplateResponse(request, "admin/approvals/approvals.html", context)

    def navigation_badge(self, request: HttpRequest) -> int:
        """Return the number of approvals that wait, up to 99."""
        return int(self.get_queryset(request).pending(now()).order_by()[:MOST_COUNTED].count())

    def _decide(self, request: HttpRequest) -> HttpResponse:
        """Decide as the form says, and show what waits next."""
        given, rows = request.POST, self.get_queryset(request)
        wanted = parse_id(given.get("approval"))
        approval = rows.filter(id=wanted).first() if wanted else None
        verdict, form = page.VERDICTS.get(given.get("act", "")), ApprovalDecisionForm(given)
        if approval is None or verdict is None:
            messages.error(request, "Nothing was decided: the approval does not exist here.")
            return HttpResponseRedirect(page.url_of(None))
        if not access_of(request).may(OFFICERS, approval.tenant_id):
            raise PermissionDenied
        if not is_shown(request):
            messages.error(request, "Nothing was decided: sign in with a second factor to decide.")
        elif not form.is_valid():
            messages.error(request, f"Nothing was decided: the note is longer than {MAX_NOTE_LENGTH}.")
        else:
            try:
                decided = services.decide(
                    approval_id=approval.id,
                    approved=verdict,
                    note=form.cleaned_data["note"],
                    **user_of(request, approval),
                )
            except ServiceError as error:
                messages.error(request, f"Nothing was decided: {error.message}.")
            else:
                messages.success(request, f"{decided.get_status_display()}: {visible(decided)}.")
                approval = None
        return HttpResponseRedirect(page.url_of(approval))
