"""The review inbox in the console: the first screen, where officers decide and others read along."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from agents.models import Agent
from auditlog.actors.names import NamesActors, actor_shown
from compliance.console.access import OFFICERS, access_of
from compliance.console.admin import RelatedLink, TenantScopedAdmin
from compliance.console.display import (
    EMPTY,
    column,
    score_chip,
    short_code,
    shortened,
    status_chip,
    visible,
)
from compliance.console.filters import ChoicesDropdownFilter, RangeDateTimeFilter, TenantFilter
from compliance.console.navigation import NavigationLine
from compliance.core.clock import now
from compliance.core.errors import ServiceError
from compliance.core.identifiers import parse_id
from events.inbox import page
from events.inbox.decisions import ACTS, InboxCall
from events.inbox.forms import DecisionForm, InboxFilters
from events.inbox.models import InboxComment, OpenEvent


@admin.register(OpenEvent)
class OpenEventAdmin(TenantScopedAdmin):
    """The inbox in place of a list; a row's own page shows what the list would."""

    related_links = (
        RelatedLink("Event", "timeline", "events_behaviorevent", "id__exact"),
        RelatedLink("Agent", "smart_toy", "agents_agent", "id__exact", lambda row: row.agent_id),
    )
    fieldsets = ((None, {"fields": ("action_type", "risk", "agent", "tenant", "received_at")}),)

    risk = column("risk", lambda opened: score_chip(opened.risk_score, opened.risk_band))

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            return self._act(request)
        return self._shown(request, DecisionForm())

    def variables(self, request: HttpRequest, form: DecisionForm) -> dict[str, Any]:
        """Return the template variables of the inbox."""
        return page.context_of(request, self.get_queryset(request), form)

    def _shown(self, request: HttpRequest, form: DecisionForm) -> HttpResponse:
        context = {**self.admin_site.each_context(request), **self.variables(request, form)}
        return TemplateResponse(request, "admin/inbox/inbox.html", context)

    def _act(self, request: HttpRequest) -> HttpResponse:
        """Do what a form of the inbox asks for, and show the next event with the same filters."""
        filters, given = InboxFilters.of(request.GET), request.POST
        # The agent and event that the submitted page showed.
        place: dict[str, Any] = {name: parse_id(given.get(name)) for name in ("agent", "event")}
        url = reverse("admin:inbox_openevent_changelist")
        act = ACTS.get(given.get("act", ""))
        if act is None:
            messages.error(request, "Nothing was changed: the inbox has no such action.")
            return HttpResponseRedirect(url + filters.query(**place))
        agents = self.admin_site.get_model_admin(Agent).get_queryset(request)
        agent = agents.filter(id=place["agent"]).first() if place["agent"] else None
        if agent is None:
            messages.error(request, "Nothing was changed: the agent does not exist here.")
            return HttpResponseRedirect(url + filters.query())
        if not access_of(request).may(OFFICERS, agent.tenant_id):
            raise PermissionDenied
        form = DecisionForm(given, needs_note=act.needs_note, longest=act.longest_note)
        if not form.is_valid():
            return self._shown(request, form)
        note, case_number = form.cleaned_data["note"], form.cleaned_data["case_number"] or None
        try:
            said = act.run(InboxCall(request, agent, place["event"], note, case_number, now()))
        except ServiceError as error:
            messages.error(request, error.message)
        else:
            messages.success(request, said)
            if act.closes:
                place = {"agent": agent.id, "after": place["event"]}
        return HttpResponseRedirect(url + filters.query(**place))


@admin.register(InboxComment)
class InboxCommentAdmin(NamesActors, TenantScopedAdmin):
    """Every comment there was, newest first."""

    navigation = NavigationLine("Agents", 5, "Comments", "comment")
    related_links = (
        RelatedLink("Agent", "smart_toy", "agents_agent", "id__exact", lambda row: row.agent_id),
    )
    list_display = ("created_at", "what", "agent_name", "shortened_text", "case", "officer", "tenant")
    list_select_related = ("agent", "tenant")
    list_filter = (("kind", ChoicesDropdownFilter), TenantFilter, ("created_at", RangeDateTimeFilter))
    search_fields = ("case_number", "agent__name", "actor_id")
    search_ids = ("pk", "event_id", "agent_id")
    search_help_text = "Case number, agent name, person or an ID"
    fieldsets = (
        (None, {"fields": ("what", "full_text", "case", "officer", "created_at")}),
        ("About", {"fields": ("event_code", "agent", "tenant")}),
    )

    what = column("kind", lambda row: status_chip(row.kind), ordering="kind")
    agent_name = column("agent", lambda row: visible(row.agent.name))
    officer = column("by", lambda row: actor_shown(row.actor_id, row.actor_name), ordering="actor_id")
    case = column("case number", lambda row: visible(row.case_number or EMPTY), ordering="case_number")
    full_text = column("text", lambda row: visible(row.text))
    shortened_text = column("text", lambda row: shortened(visible(row.text), 80))
    event_code = column("event", lambda row: short_code(str(row.event_id)) if row.event_id else EMPTY)
