"""Behavioural events in the console: what agents did, why it scored as it did, and officers' verdicts."""

from functools import partial
from operator import attrgetter
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from unfold.decorators import display
from unfold.paginator import InfinitePaginator
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from agents.admin import AgentAdmin
from auditlog.actors.names import NamesActors, actor_shown, names_of
from auditlog.actors.requests import user_of
from compliance.console.access import access_of
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.admin import AUDIT_TRAIL, RelatedLink, TenantScopedAdmin
from compliance.console.display import (
    EMPTY,
    chip,
    code,
    column,
    facts,
    pretty_json,
    score_chip,
    short_code,
    status_chip,
    table,
    visible,
)
from compliance.console.filters import (
    ChoicesDropdownFilter,
    DropdownFilter,
    RangeDateTimeFilter,
    TenantFilter,
)
from compliance.console.navigation import NavigationLine
from compliance.core.identifiers import parse_id
from events import listing
from events.inbox import reviewing
from events.models import BehaviorEvent, EventReview, MarkedPlace, ReviewVerdict, Simulation
from events.querysets import BehaviorEventQuerySet
from events.risk.scoring.model import in_words
from events.risk.scoring.rules import worth
from events.simulation_admin import SimulationAdmin
from events.trail.page import TRAIL

REASON_COLUMNS = ("Reason", "Observed", "Expected", "Effect")
WAITING = "waiting"
AGENT_ID = attrgetter("agent_id")
OF_AGENT = RelatedLink("Agent", "smart_toy", "agents_agent", "id__exact", AGENT_ID)
OF_EVENT = RelatedLink("Event", "timeline", "events_behaviorevent", "id__exact", lambda row: row.event_id)


class NoteForm(forms.Form):
    note = forms.CharField(
        max_length=1000,
        required=False,
        help_text="Kept beside your name with the review and in the audit log; at most 1000 characters.",
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "autofocus": True}),
    )
    case_number = forms.CharField(max_length=64, required=False, widget=UnfoldAdminTextInputWidget())


def _review(call: ActionCall, verdict: ReviewVerdict) -> str:
    made, _ = reviewing.review(
        event_id=call.row.id,
        verdict=verdict,
        note=call.data["note"] or None,
        case_number=call.data["case_number"] or None,
        **user_of(call.request, call.row),
    )
    if verdict == ReviewVerdict.DISMISSED:
        return "The event is dismissed: to its agent it is ordinary from now on."
    if not made.marked:
        return "The event is confirmed. Nothing is marked: it names no place that is not common."
    return f"The event is confirmed, and where it went is marked for the tenant: {len(made.marked)}."


CONFIRM = ConfirmedAction(
    name="confirm",
    label="Confirm as attack",
    icon="gpp_bad",
    explanation=(
        "The event was part of an attack. Where it went is marked, unless other agents of the tenant know "
        "it: events that name such a place score higher, by half as much after 30 days, and are not high by "
        "that alone. Dismissing the event lifts the marks. The agent itself goes on: suspend it, or revoke "
        "its certificate, on its own page."
    ),
    run=partial(_review, verdict=ReviewVerdict.CONFIRMED),
    is_offered=lambda event: event.said != ReviewVerdict.CONFIRMED,
    form_class=NoteForm,
    is_destructive=True,
)
DISMISS = ConfirmedAction(
    name="dismiss",
    label="Dismiss",
    icon="verified_user",
    explanation=(
        "The event was ordinary after all. Its agent learns it, so that the like of it scores lower, and "
        "what a confirmation of it marked is lifted. A place that was marked before the event counts as "
        "confirmed once less. Its score stays, and the strikes that it counted for."
    ),
    run=partial(_review, verdict=ReviewVerdict.DISMISSED),
    is_offered=lambda event: event.said != ReviewVerdict.DISMISSED,
    form_class=NoteForm,
)


class ReviewFilter(DropdownFilter):
    title = "review"
    parameter_name = "review"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(WAITING, "to be reviewed"), *ReviewVerdict.choices]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value == WAITING:
            return listing.waiting(queryset)  # type: ignore[arg-type]
        return listing.judged(queryset, value) if value in ReviewVerdict.values else queryset  # type: ignore[arg-type]


class EventRowAdmin(TenantScopedAdmin):
    """A long list, without a count of its rows, and the columns that its models share.

    It has one order, which an index has: another would read and sort all rows.
    """

    sortable_by = ()
    paginator = InfinitePaginator
    show_full_result_count = False
    moment: str  # what one tenant's rows are ordered by; those of several are by id

    agent_name = column("agent", lambda row: visible(row.agent.name))
    event_code = column("event", lambda row: short_code(str(row.event_id)))

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Order as an index serves: one tenant's rows by their moment, several tenants' by id (UUIDv7)."""
        return ("-id",) if _is_of_several(request) else (f"-{self.moment}", "-id")


@admin.register(BehaviorEvent)
class BehaviorEventAdmin(EventRowAdmin):
    """Newest first; read-only but for officers' verdicts, as an event is evidence."""

    moment = "occurred_at"
    navigation = NavigationLine("Agents", 3, "Events", "timeline")
    confirmed_actions = (CONFIRM, DISMISS)
    related_links = (
        OF_AGENT,
        RelatedLink("All of this agent", "timeline", "events_behaviorevent", "agent__id__exact", AGENT_ID),
        RelatedLink("Reviews", "gavel", "events_eventreview", "event_id"),
        AUDIT_TRAIL,
    )
    list_display = ("occurred_at", "agent_name", "action", "risk", "verdict", "tenant", "received_at")
    list_select_related = ("agent", "tenant")
    list_filter = (
        ReviewFilter,
        ("risk_band", ChoicesDropdownFilter),
        ("action_type", ChoicesDropdownFilter),
        TenantFilter,
    )
    # Shows the field: `get_search_results` searches.
    search_fields = ("agent__name",)
    search_help_text = "Agent name, ID of an event or agent; session or chain, if lately"
    fieldsets = (
        (None, {"fields": ("action", "risk", "agent", "tenant")}),
        ("Why this score", {"fields": ("why", "model_version")}),
        ("Review", {"fields": ("review_facts",)}),
        ("Times", {"fields": ("occurred_at", "received_at")}),
        ("What the agent said", {"fields": ("details_json", "session_id", "chain_id", "decision_id")}),
        ("Event", {"fields": ("identifier",)}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: BehaviorEventQuerySet = super().get_queryset(request)  # type: ignore[assignment]
        tenants = access_of(request).tenants_for(self.view_roles)
        chosen = parse_id(request.GET.get(TenantFilter.parameter_name))
        if chosen and (tenants is None or chosen in tenants):
            tenants = frozenset([chosen])
        # Named here, too: where tables are distributed, the join of one tenant's reviews is else not seen.
        return rows.with_verdict(EventReview.objects.of_tenants(tenants))

    def get_list_filter(self, request: HttpRequest) -> Any:
        """Filter by the time that the list is ordered by."""
        own = ("received_at", listing.ReceivedFilter), ("occurred_at", RangeDateTimeFilter)
        return (*super().get_list_filter(request), own[0] if _is_of_several(request) else own[1])

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        text = search_term.strip()
        if not text or "\x00" in text:
            return super().get_search_results(request, queryset, search_term)
        tenants = access_of(request).tenants_for(self.view_roles)
        return listing.found(queryset, text, tenants=tenants), False  # type: ignore[arg-type]

    action = column("action", lambda event: chip(event.action_type, verbatim=True))
    risk = column("risk", lambda event: score_chip(event.risk_score, event.risk_band))
    verdict = column("review", lambda event: status_chip(event.said))
    details_json = column("details", lambda event: pretty_json(event.details))

    @display(description="reasons")
    def why(self, event: BehaviorEvent) -> str:
        rows = []
        for reason in event.reasons or ():
            if isinstance(reason, dict):
                name, observed, expected = (
                    str(reason.get(key, "")) for key in ("name", "observed", "expected")
                )
                told = format_html("{}<br>{}", visible(in_words(name)), code(name))
                effect = worth(name, reason.get("weight"))
                rows.append((told, visible(observed), visible(expected), effect))
        return table(REASON_COLUMNS, rows) if rows else EMPTY

    @display(description="verdict")
    def review_facts(self, event: BehaviorEvent) -> str:
        found = EventReview.objects.that_counts(event.id)
        if found is None:
            return "not reviewed"
        return facts([
            ("verdict", found.verdict),
            ("by", names_of([found.actor_id]).get(found.actor_id, "") + f" {found.actor_id}"),
            ("at", f"{found.reviewed_at:%Y-%m-%d %H:%M:%S} UTC"),
            ("note", found.note or EMPTY),
            ("case number", found.case_number or EMPTY),
            ("marked", ", ".join(found.marked) or EMPTY),
        ])  # fmt: skip


def _is_of_several(request: HttpRequest) -> bool:
    """Whether the list is of several tenants' rows: it is not filtered by one, and the user sees more."""
    return access_of(request).shows_many_tenants and parse_id(request.GET.get("tenant", "")) is None


@admin.register(EventReview)
class EventReviewAdmin(NamesActors, EventRowAdmin):
    """Every verdict there was, newest first."""

    moment = "reviewed_at"
    related_links = (OF_EVENT, OF_AGENT)
    list_display = ("reviewed_at", "outcome", "agent_name", "event_code", "officer", "tenant")
    list_select_related = ("agent", "tenant")
    list_filter = (("verdict", ChoicesDropdownFilter), TenantFilter, ("reviewed_at", RangeDateTimeFilter))
    search_fields = ("agent__name", "actor_id")
    search_ids = ("pk", "event_id", "agent_id")
    search_help_text = "Agent name, officer or an ID"
    fieldsets = (
        (None, {"fields": ("outcome", "note_text", "case_number", "officer", "reviewed_at")}),
        ("Event", {"fields": ("event_code", "agent", "tenant")}),
    )

    officer = column(
        "by", lambda review: actor_shown(review.actor_id, review.actor_name), ordering="actor_id"
    )

    outcome = column("verdict", lambda review: status_chip(review.verdict))
    note_text = column("note", lambda review: visible(review.note or EMPTY))


@admin.register(MarkedPlace)
class MarkedPlaceAdmin(EventRowAdmin):
    """Places of confirmed attacks, and those that dismissed events named later."""

    moment = "marked_at"
    related_links = (OF_EVENT,)
    list_display = ("marked_at", "place", "verdict", "event_code", "tenant")
    list_select_related = ("tenant",)
    list_filter = (TenantFilter, ("marked_at", RangeDateTimeFilter))
    search_fields = ("name",)
    search_ids = ("pk", "event_id")
    fieldsets = ((None, {"fields": ("place", "verdict", "event_code", "tenant", "marked_at")}),)

    place = column("place", lambda marked: code(marked.name))
    verdict = column(
        "verdict",
        lambda marked: status_chip(
            ReviewVerdict.CONFIRMED if marked.is_confirmed else ReviewVerdict.DISMISSED
        ),
    )


admin.site.register(Simulation, SimulationAdmin)
# The trail holds events, which `agents` cannot import.
AgentAdmin.row_pages = (*AgentAdmin.row_pages, TRAIL)
