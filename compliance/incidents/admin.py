"""Incidents in the console: a list with running clocks, and a page with timeline and actions."""

from functools import partial
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from unfold.decorators import display

from compliance.console.actions import ConfirmedAction
from compliance.console.admin import AUDIT_TRAIL, RelatedLink, TenantScopedAdmin
from compliance.console.display import EMPTY, chip, column, moment, visible
from compliance.console.filters import ChoicesDropdownFilter, RangeDateTimeFilter, tenant_filter
from compliance.console.navigation import NavigationLine
from compliance.core.clock import now
from compliance.core.errors import NotFound
from compliance.incidents.console import shown
from compliance.incidents.console.actions import ACTIONS
from compliance.incidents.console.parts import IncidentFile, IncidentPart
from compliance.incidents.models import Incident, TimelineEntry

ENTRIES_SHOWN = 200
MOST_COUNTED = 99
PARTS_AFTER = 2
"""Parts come after so many sections, and their actions after so many actions."""


@shown.once
def _timeline(incident: Incident) -> str:
    """Show the newest rows, the newest first."""
    rows = TimelineEntry.objects.filter(incident_id=incident.id).order_by("-at", "-id")
    return shown.timeline_table(list(rows[:ENTRIES_SHOWN]))


@shown.once
def _attachments(incident: Incident) -> str:
    ids = Incident.objects.and_merged(incident.id)
    found = TimelineEntry.objects.of_incidents(ids).attachments()
    return shown.attachments_table(list(found[:ENTRIES_SHOWN]))


@admin.register(Incident)
class IncidentAdmin(TenantScopedAdmin):
    """Incidents, which officers assess and everyone of the tenant reads; rooms further right add parts."""

    navigation = NavigationLine("Agents", 4, "Incidents", "emergency_home")
    confirmed_actions: ClassVar[tuple[ConfirmedAction, ...]] = ACTIONS
    related_links = (
        RelatedLink("Agent", "smart_toy", "agents_agent", "id__exact", lambda row: row.agent_id),
        RelatedLink(
            "Events", "timeline", "events_behaviorevent", "agent__id__exact", lambda row: row.agent_id
        ),
        RelatedLink(
            "Certificates",
            "workspace_premium",
            "certificates_certificate",
            "agent__id__exact",
            lambda row: row.agent_id,
        ),
        AUDIT_TRAIL,
    )
    list_display = ("label", "state_chip", "severity_chip", "clock", "owner_name", "tenant", "opened_at")
    list_select_related = ("tenant",)
    list_filter = (
        ("state", ChoicesDropdownFilter),
        ("severity", ChoicesDropdownFilter),
        ("cause", ChoicesDropdownFilter),
        tenant_filter(),
        ("opened_at", RangeDateTimeFilter),
    )
    search_fields = ("agents__agent_name", "title", "owner")
    search_ids = ("pk", "agents__agent_id")
    search_help_text = "Agent name, title, owner or an ID"
    ordering = ("-opened_at", "-id")
    fieldsets: ClassVar[Any] = (
        (
            None,
            {"fields": ("name", "state_chip", "severity_chip", "tenant", "owner_name", "cause", "goes_on")},
        ),
        ("Clocks", {"fields": ("clocks_now",)}),
        ("Agents and certificates", {"fields": ("agents", "certificates")}),
        ("What was stated", {"fields": ("harm", "dora", "aware", "classified_at")}),
        ("Times", {"fields": ("detected_at", "opened_at", "contained_at", "closed_at")}),
        ("Timeline", {"fields": ("timeline_rows",)}),
        ("Attachments, by digest", {"fields": ("attachments",)}),
    )
    readonly_fields = ("aware",)
    files: ClassVar[tuple[IncidentFile, ...]] = ()

    class Media:
        js = ("console/clocks.js",)

    label = column(
        "incident", lambda row: f"{row.reference} · {visible(row.agent_name)}", ordering="opened_at"
    )
    name = column("incident", lambda row: f"{row.reference} · {visible(row.title)}")
    state_chip = column(
        "state", lambda row: chip(row.state, shown.STATE_COLOURS[row.state]), ordering="state"
    )
    severity_chip = column(
        "severity", lambda row: chip(row.severity, shown.SEVERITY_COLOURS[row.severity]), ordering="severity"
    )
    clock = column("next report", lambda row: shown.next_clock(row, now()), ordering="next_due_at")
    owner_name = column("owner", lambda row: visible(row.owner) or EMPTY, ordering="owner")
    agents = column("agents", shown.agents_table)
    certificates = column("certificates", shown.certificates_table)
    goes_on = column("merged into", shown.other_link)
    harm = column("AI Act, Article 3(49)", lambda row: row.get_serious_harm_display())
    dora = column("DORA, Article 18", lambda row: row.get_dora_class_display())
    clocks_now = column("clocks", lambda row: shown.clocks_table(row, now()))
    timeline_rows = column("timeline", _timeline)
    attachments = column("attachments", _attachments)

    @display(description="aware since")
    def aware(self, incident: Incident) -> str:
        return moment(incident.aware_at) if incident.aware_at else "the detection"

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """Allow the filter by agent, which the pages of agents link to."""
        return lookup == "agents__agent_id" or super().lookup_allowed(lookup, value, request)

    @classmethod
    def add_part(cls, part: IncidentPart) -> None:
        """Add a section, an action and files to the page; to be called while the console is loaded."""
        for name, shown_column in part.columns.items():
            setattr(cls, name, shown_column)
        section = (part.title, {"fields": tuple(part.columns)})
        cls.fieldsets = (*cls.fieldsets[:PARTS_AFTER], section, *cls.fieldsets[PARTS_AFTER:])
        actions = cls.confirmed_actions
        cls.confirmed_actions = (*actions[:PARTS_AFTER], part.action, *actions[PARTS_AFTER:])
        cls.files = (*cls.files, *part.files)

    def get_urls(self) -> list[URLPattern]:
        pages = [
            path(
                f"<path:object_id>/{file.route}",
                self.admin_site.admin_view(partial(self.file_view, file=file)),
                name=f"incidents_incident_{file.name}",
            )
            for file in self.files
        ]
        return pages + super().get_urls()

    def file_view(
        self, request: HttpRequest, object_id: str, file: IncidentFile, **arguments: Any
    ) -> HttpResponse:
        """Answer with a file of an incident that the user may see."""
        incident = self.get_object(request, unquote(object_id))
        if incident is None:
            return self.missing(request, object_id)
        try:
            return file.view(request, incident, **arguments)
        except NotFound:
            return self.missing(request, object_id)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("announced")

    def navigation_badge(self, request: HttpRequest) -> int:
        """Return the number of incidents that go on, up to 99."""
        return int(self.get_queryset(request).ongoing().order_by()[:MOST_COUNTED].count())
