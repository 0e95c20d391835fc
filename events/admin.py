"""Behavioural events in the console: what agents did, and why it scored as it did."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
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
    facts,
    pretty_json,
    score_chip,
    short_code,
    status_chip,
    visible,
)
from compliance.console.filters import (
    ChoicesDropdownFilter,
    DropdownFilter,
    RangeDateTimeFilter,
    tenant_filter,
)
from events.console_actions import CONFIRM, DISMISS
from events.models import BehaviorEvent, EventReview, MarkedPlace, ReviewVerdict, RiskBand
from events.querysets import BehaviorEventQuerySet
from events.words import in_words, odds

REASON_COLUMNS = ("Reason", "Observed", "Expected", "Odds of an attack")
WAITING = "waiting"


class ReviewFilter(DropdownFilter):
    """The queue of what nobody has reviewed, and what was said of the rest."""

    title = "review"
    parameter_name = "review"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(WAITING, "to be reviewed"), *ReviewVerdict.choices]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == WAITING:
            return queryset.exclude(risk_band=RiskBand.LOW).filter(said=None)
        return queryset.filter(said=self.value()) if self.value() in ReviewVerdict.values else queryset


@admin.register(BehaviorEvent)
class BehaviorEventAdmin(TenantScopedAdmin):
    """Newest first; read-only, as an event is evidence, but for what officers make of it."""

    confirmed_actions = (CONFIRM, DISMISS)
    related_links = (
        RelatedLink("Agent", "smart_toy", "agents_agent", "id__exact", lambda row: row.agent_id),
        RelatedLink(
            "All of this agent",
            "timeline",
            "events_behaviorevent",
            "agent__id__exact",
            lambda row: row.agent_id,
        ),
        RelatedLink("Reviews", "gavel", "events_eventreview", "event_id"),
        AUDIT_TRAIL,
    )
    list_display = ("occurred_at", "agent_name", "action", "risk", "verdict", "tenant", "received_at")
    list_select_related = ("agent", "tenant")
    list_filter = (
        ReviewFilter,
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
        ("Review", {"fields": ("review_facts",)}),
        ("Times", {"fields": ("occurred_at", "received_at")}),
        ("What the agent said", {"fields": ("details_json", "session_id", "chain_id")}),
        ("Event", {"fields": ("identifier",)}),
    )
    readonly_fields = ("action", "risk", "why", "review_facts", "details_json", "identifier")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: BehaviorEventQuerySet = super().get_queryset(request)  # type: ignore[assignment]
        return rows.with_verdict(EventReview.objects.all())

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
        rows = format_html_join(
            "",
            "<tr><td>{}<br>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            [
                (
                    visible(in_words(str(reason.get("name", "")))),
                    code(str(reason.get("name", ""))),
                    visible(reason.get("observed", "")),
                    visible(reason.get("expected", "")),
                    odds(reason.get("weight")),
                )
                for reason in reasons
            ],
        )
        head = format_html_join("", '<th scope="col">{}</th>', [(name,) for name in REASON_COLUMNS])
        return format_html(
            '<table class="console-reasons"><thead><tr>{}</tr></thead><tbody>{}</tbody></table>', head, rows
        )

    @display(description="review")
    def verdict(self, event: BehaviorEvent) -> str:
        return status_chip(event.said) if event.said else EMPTY  # type: ignore[attr-defined]

    @display(description="verdict")
    def review_facts(self, event: BehaviorEvent) -> str:
        found = EventReview.objects.that_counts(event.id)
        if found is None:
            return "not reviewed"
        told = [
            ("verdict", found.verdict),
            ("by", found.actor_id),
            ("at", f"{found.reviewed_at:%Y-%m-%d %H:%M:%S} UTC"),
            ("note", found.note or EMPTY),
            ("marked", ", ".join(found.marked) or EMPTY),
        ]
        return facts(told)

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
