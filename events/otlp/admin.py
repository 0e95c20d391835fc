"""The console's page of names in spans, where one click gives a name its agent."""

from django import forms
from django.contrib import admin, messages
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.widgets import UnfoldAdminSelectWidget

from agents.models import Agent, AgentStatus
from auditlog.actors.requests import user_of
from compliance.console.access import DEVELOPERS
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.admin import TenantScopedAdmin
from compliance.console.display import chip, code, column, visible
from compliance.console.filters import ChoicesDropdownFilter, TenantFilter
from compliance.console.navigation import NavigationLine
from events.otlp import services
from events.otlp.models import TracedName

MOST_OFFERED = 500


def _form_for(row: TracedName) -> type[forms.Form]:
    """Return a form that offers the tenant's agents; where there are more, the API maps names to them."""
    agents = (
        Agent.objects.for_tenant(row.tenant_id).exclude(status=AgentStatus.RETIRED).order_by("name", "id")
    )
    offered = [(str(agent.id), visible(agent.name)) for agent in agents[:MOST_OFFERED]]

    class MapForm(forms.Form):
        agent = forms.ChoiceField(choices=offered, widget=UnfoldAdminSelectWidget)

    return MapForm


def _map(call: ActionCall) -> str:
    asked = user_of(call.request, call.row)
    services.create(source=call.row.source, name=call.row.name, agent_id=call.data["agent"], **asked)
    return "Spans of this name are the agent's events from now on."


def _remove(call: ActionCall) -> HttpResponse:
    services.delete(name_id=call.row.pk, **user_of(call.request, call.row))
    messages.success(call.request, "The name stands for no agent.")
    return HttpResponseRedirect(reverse("admin:otlp_tracedname_changelist"))


@admin.register(TracedName)
class TracedNameAdmin(TenantScopedAdmin):
    navigation = NavigationLine("Integration", 6, "Traced names", "route")
    confirmed_actions = (
        ConfirmedAction(
            "map",
            "Map to an agent",
            "smart_toy",
            "Spans of this name become events of the agent; what was refused before is not.",
            _map,
            is_offered=lambda row: row.agent_id is None,
            roles=DEVELOPERS,
            form_for=_form_for,
        ),
        ConfirmedAction(
            "remove",
            "Remove",
            "delete",
            "Spans of this name are refused; it is listed again when it is next met.",
            _remove,
            roles=DEVELOPERS,
            form_class=forms.Form,
            is_destructive=True,
        ),
    )
    list_display = ("label", "source", "agent_name", "tenant", "seen_at")
    list_select_related = ("agent", "tenant")
    list_filter = (("source", ChoicesDropdownFilter), TenantFilter)
    search_fields = ("name",)
    search_ids = ("pk", "agent_id")
    fieldsets = ((None, {"fields": ("label", "source", "agent_name", "tenant", "seen_at")}),)

    label = column("name", lambda row: code(row.name), ordering="name")
    agent_name = column(
        "agent", lambda row: visible(row.agent.name) if row.agent_id else chip("none yet", "warning")
    )
