"""Behavioural events in the console: what agents did, and why it scored as it did."""

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from unfold.decorators import display
from unfold.paginator import InfinitePaginator

from compliance.console import RelatedLink, TenantScopedAdmin, access_of
from compliance.console.admin import AUDIT_TRAIL
from compliance.console.display import (
    EMPTY,
    chip,
    code,
    pretty_json,
    score_chip,
    short_code,
    status_chip,
    visible,
)
from compliance.console.filters import ChoicesDropdownFilter, RangeDateTimeFilter, tenant_filter
from events.models import BehaviorEvent, EventReview, MarkedPlace

REASON_COLUMNS = ("name", "observed", "expected", "weight")


@admin.register(BehaviorEvent)
class BehaviorEventAdmin(TenantScopedAdmin):
    """Newest first; read-only, as an event is evidence."""

    related_links = (
        RelatedLink("Agent", "smart_toy", "agents_agent", "id__exact", lambda row: row.agent_id),
        RelatedLink(
            "All of this agent",
            "timeline",
            "events_behaviorevent",
            "agent__id__exact",
            lambda row: row.agent_id,
        ),
        AUDIT_TRAIL,
    )
    list_display = ("occurred_at", "agent_name", "action", "risk", "tenant", "received_at")
    list_select_related = ("agent", "tenant")
    list_filter = (
        ("risk_band", ChoicesDropdownFilter),
        ("action_type", ChoicesDropdownFilter),
        tenant_filter(),
        ("occurred_at", RangeDateTimeFilter),
    )
    search_fields = ("agent__name", "session_id__exact")
    search_ids = ("pk", "agent_id", "chain_id")
    search_help_text = "Agent name, session or an ID"
    paginator = InfinitePaginator
    show_full_result_count = False
    fieldsets = (
        (None, {"fields": ("action", "risk", "agent", "tenant")}),
        ("Why this score", {"fields": ("why", "model_version")}),
        ("Times", {"fields": ("occurred_at", "received_at")}),
        ("What the agent said", {"fields": ("details_json", "session_id", "chain_id")}),
        ("Event", {"fields": ("identifier",)}),
    )
    readonly_fields = ("action", "risk", "why", "details_json", "identifier")

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """By what an index serves: a tenant's by time, everybody's by id, which is a time, too (UUIDv7)."""
        return ("-id",) if access_of(request).is_operator else ("-occurred_at", "-id")

    @display(description="agent", ordering="agent__name")
    def agent_name(self, event: BehaviorEvent) -> str:
        return visible(event.agent.name)

    @display(description="action", ordering="action_type")
    def action(self, event: BehaviorEvent) -> str:
        return chip(event.action_type, verbatim=True)

    @display(description="risk", ordering="risk_score")
    def risk(self, event: BehaviorEvent) -> str:
        return score_chip(event.risk_score, event.risk_band)

    @display(description="reasons")
    def why(self, event: BehaviorEvent) -> str:
        reasons = [reason for reason in event.reasons or () if isinstance(reason, dict)]
        if not reasons:
            return EMPTY
        cells = [
            format_html_join("", "<td>{}</td>", [(visible(reason.get(name, "")),) for name in REASON_COLUMNS])
            for reason in reasons
        ]
        head = format_html_join(
            "", '<th scope="col">{}</th>', [(name.capitalize(),) for name in REASON_COLUMNS]
        )
        rows = format_html_join("", "<tr>{}</tr>", [(row,) for row in cells])
        return format_html(
            '<table class="console-reasons"><thead><tr>{}</tr></thead><tbody>{}</tbody></table>', head, rows
        )

    @display(description="details")
    def details_json(self, event: BehaviorEvent) -> str:
        return pretty_json(event.details)

    @display(description="ID")
    def identifier(self, event: BehaviorEvent) -> str:
        return code(event.pk)


@admin.register(EventReview)
class EventReviewAdmin(TenantScopedAdmin):
    """Every verdict there was, newest first."""

    related_links = (
        RelatedLink("Event", "timeline", "events_behaviorevent", "id__exact", lambda row: row.event_id),
        RelatedLink("Agent", "smart_toy", "agents_agent", "id__exact", lambda row: row.agent_id),
    )
    list_display = ("reviewed_at", "outcome", "agent_name", "event_code", "actor_id", "tenant")
    list_select_related = ("agent", "tenant")
    list_filter = (("verdict", ChoicesDropdownFilter), tenant_filter(), ("reviewed_at", RangeDateTimeFilter))
    search_fields = ("agent__name", "actor_id")
    search_ids = ("pk", "event_id", "agent_id")
    search_help_text = "Agent name, officer or an ID"
    ordering = ("-reviewed_at", "-id")
    paginator = InfinitePaginator
    show_full_result_count = False
    fieldsets = (
        (None, {"fields": ("outcome", "note_text", "actor_id", "reviewed_at")}),
        ("Event", {"fields": ("event_code", "agent", "tenant")}),
    )
    readonly_fields = ("outcome", "note_text", "event_code")

    @display(description="verdict", ordering="verdict")
    def outcome(self, review: EventReview) -> str:
        return status_chip(review.verdict)

    @display(description="note")
    def note_text(self, review: EventReview) -> str:
        return visible(review.note) if review.note else EMPTY

    @display(description="agent", ordering="agent__name")
    def agent_name(self, review: EventReview) -> str:
        return visible(review.agent.name)

    @display(description="event")
    def event_code(self, review: EventReview) -> str:
        return short_code(str(review.event_id))


@admin.register(MarkedPlace)
class MarkedPlaceAdmin(TenantScopedAdmin):
    """Where confirmed attacks went; whichever agent of the tenant names such a place again scores high."""

    related_links = (
        RelatedLink("Event", "timeline", "events_behaviorevent", "id__exact", lambda row: row.event_id),
    )
    list_display = ("marked_at", "place", "event_code", "tenant")
    list_select_related = ("tenant",)
    list_filter = (tenant_filter(), ("marked_at", RangeDateTimeFilter))
    search_fields = ("name",)
    search_ids = ("pk", "event_id")
    ordering = ("-marked_at", "-id")
    paginator = InfinitePaginator
    show_full_result_count = False
    fieldsets = ((None, {"fields": ("place", "event_code", "tenant", "marked_at")}),)
    readonly_fields = ("place", "event_code")

    @display(description="place", ordering="name")
    def place(self, marked: MarkedPlace) -> str:
        return code(marked.name)

    @display(description="event")
    def event_code(self, marked: MarkedPlace) -> str:
        return short_code(str(marked.event_id))
