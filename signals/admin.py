"""Streams of signals and what waits in them, in the console."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from unfold.decorators import display

from auditlog.actors.requests import user_of
from compliance.console.access import DEVELOPERS
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.admin import AUDIT_TRAIL, TenantScopedAdmin
from compliance.console.display import EMPTY, chip, chips, code, moment, shortened, visible
from compliance.console.filters import ChoicesDropdownFilter, TenantFilter
from compliance.console.navigation import NavigationLine
from signals import streams
from signals.models import MAX_REASON, Stream
from signals.vocabulary import StreamStatus


def _of(call: ActionCall) -> dict[str, Any]:
    return {"stream_id": call.row.id, **user_of(call.request, call.row)}


def _pause(call: ActionCall) -> str:
    reason = call.data["reason"][:MAX_REASON]
    streams.set_status(status=StreamStatus.PAUSED, reason=reason, is_announced=True, **_of(call))
    return "The stream is paused."


def _resume(call: ActionCall) -> str:
    streams.set_status(status=StreamStatus.ENABLED, is_announced=True, **_of(call))
    return "The stream is enabled; what waited is on its way."


def _verify(call: ActionCall) -> str:
    streams.request_verification(**_of(call))
    return "A verification event is on its way, behind what waits."


STREAM_ACTIONS = (
    ConfirmedAction(
        *("verify", "Send verification", "send"),
        "Sends a verification event to this receiver, behind what waits.",
        _verify,
        is_offered=lambda row: row.status != StreamStatus.DISABLED,
        roles=DEVELOPERS,
        form_class=forms.Form,
    ),
    ConfirmedAction(
        *("pause", "Pause", "pause"),
        "Sends nothing until the stream is resumed; what happens meanwhile is kept.",
        _pause,
        is_offered=lambda row: row.status == StreamStatus.ENABLED,
        roles=DEVELOPERS,
    ),
    ConfirmedAction(
        *("resume", "Resume", "play_arrow"),
        "Sends what was kept, and what happens from now on.",
        _resume,
        is_offered=lambda row: row.status != StreamStatus.ENABLED,
        roles=DEVELOPERS,
        form_class=forms.Form,
    ),
)


@admin.register(Stream)
class StreamAdmin(TenantScopedAdmin):
    navigation = NavigationLine("Integration", 3, "Signal streams", "sensors")
    secret_fields = frozenset({"authorization"})
    confirmed_actions = STREAM_ACTIONS
    related_links = (AUDIT_TRAIL,)
    list_display = ("name", "state", "way", "waiting", "last_delivery", "tenant", "created_at")
    list_select_related = ("tenant",)
    list_filter = (("status", ChoicesDropdownFilter), TenantFilter)
    search_fields = ("description",)
    fieldsets = (
        (None, {"fields": ("name", "state", "status_reason", "way", "address", "event_chips", "tenant")}),
        ("Delivery", {"fields": ("waiting", "refused", "last_delivery", "last_error", "next_attempt_at")}),
        ("Life", {"fields": ("identifier", "audience", "created_at", "updated_at")}),
    )

    name = display(lambda self, row: visible(row.description or row.pk), description="stream")
    way = display(lambda self, row: "push" if row.is_push else "poll", description="delivery")
    address = display(
        lambda self, row: code(shortened(row.endpoint_url)) if row.is_push else EMPTY, description="endpoint"
    )
    event_chips = display(
        lambda self, row: chips([event.rpartition("/")[2] for event in row.events_delivered]),
        description="events",
    )
    waiting = display(lambda self, row: row.waiting_count, description="waiting")
    refused = display(lambda self, row: row.refused_count, description="refused by the receiver")
    last_delivery = display(
        lambda self, row: moment(row.last_delivered_at) if row.last_delivered_at else EMPTY,
        description="last delivery",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        is_refused = Q(signals__refused_at__isnull=False)
        counted: QuerySet[Any] = rows.annotate(
            waiting_count=Count("signals", filter=Q(signals__id__isnull=False) & ~is_refused),
            refused_count=Count("signals", filter=is_refused),
        )
        return counted

    @display(description="state", ordering="status")
    def state(self, stream: Stream) -> str:
        if stream.status != StreamStatus.ENABLED:
            return chip(stream.status, "warning" if stream.status == StreamStatus.PAUSED else "danger")
        return chip("failing", "danger") if stream.is_failing else chip("enabled", "success")
