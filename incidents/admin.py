"""Incidents in the console: a list with running clocks, and a page with timeline and actions."""

import re
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import HttpRequest

from compliance.console.actions import ConfirmedAction
from compliance.console.admin import AUDIT_TRAIL, RelatedLink, TenantScopedAdmin
from compliance.console.display import EMPTY, chip, column, moment, row_link, visible
from compliance.console.filters import ChoicesDropdownFilter, RangeDateTimeFilter, TenantFilter
from compliance.console.navigation import NavigationLine
from compliance.core.clock import now
from incidents.console import shown
from incidents.console.actions import ACTIONS

REFERENCE = re.compile(r"INC-\d{8}-([0-9A-F]{8})", re.IGNORECASE)
MOST_COUNTED = 99


class IncidentAdmin(TenantScopedAdmin):
    """Incidents, which officers assess and all of the tenant read; `reports` adds drafts and registers it."""

    found_by_name = True
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
    list_display = (
        "reference",
        "agent_shown",
        "state_chip",
        "severity_chip",
        "clock",
        "owner_name",
        "tenant",
        "opened_at",
    )
    list_select_related = ("tenant",)
    list_filter = (
        ("state", ChoicesDropdownFilter),
        ("severity", ChoicesDropdownFilter),
        ("cause", ChoicesDropdownFilter),
        TenantFilter,
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

    class Media:
        js = ("console/clocks.js",)

    reference = column("incident", lambda row: row.reference, ordering="opened_at")
    agent_shown = column("agent", lambda row: visible(row.agent_name))
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
    goes_on = column(
        "merged into",
        lambda row: (
            row_link(row.merged_into.reference, "incidents_incident", row.merged_into_id)
            if row.merged_into
            else EMPTY
        ),
    )
    harm = column("AI Act, Article 3(49)", lambda row: row.get_serious_harm_display())
    dora = column("DORA, Article 18", lambda row: row.get_dora_class_display())
    clocks_now = column("clocks", lambda row: shown.clocks_table(row, now()))
    timeline_rows = column("timeline", shown.timeline_table)
    attachments = column("attachments", shown.attachments_table)
    aware = column("aware since", lambda row: moment(row.aware_at) if row.aware_at else "the detection")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find a reference, too."""
        found = REFERENCE.fullmatch(search_term.strip())
        if found is None:
            return super().get_search_results(request, queryset, search_term)
        return queryset.filter(pk__iendswith=found[1]), False

    def navigation_badge(self, request: HttpRequest) -> int:
        """Return the number of incidents that go on, up to 99."""
        rows: Any = self.get_queryset(request)
        return int(rows.ongoing().order_by()[:MOST_COUNTED].count())
