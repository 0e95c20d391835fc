"""Webhooks, messages, deliveries and attempts in the console; secrets are never shown."""

from django.contrib import admin
from unfold.decorators import display
from unfold.paginator import InfinitePaginator

from compliance.console.admin import AUDIT_TRAIL, RelatedLink, ScopedInline, TenantScopedAdmin
from compliance.console.display import EMPTY, block, chip, chips, code, shortened, status_chip, visible
from compliance.console.filters import ChoicesDropdownFilter, RangeDateTimeFilter, tenant_filter
from webhooks.console_actions import WEBHOOK_ACTIONS, redeliver
from webhooks.models import Attempt, Delivery, Message, Webhook


def body_of(message: Message) -> str:
    return block(bytes(message.body).decode("utf-8", "replace"))


class HistoryAdmin(TenantScopedAdmin):
    ordering = ("-created_at", "-id")
    paginator = InfinitePaginator
    show_full_result_count = False


@admin.register(Webhook)
class WebhookAdmin(TenantScopedAdmin):
    secret_fields = frozenset({"secret", "previous_secret"})
    confirmed_actions = WEBHOOK_ACTIONS
    related_links = (
        RelatedLink("Deliveries", "outbox", "webhooks_delivery", "webhook__id__exact"),
        AUDIT_TRAIL,
    )
    list_display = ("short_address", "state", "event_chips", "tenant", "created_at")
    list_select_related = ("tenant",)
    list_filter = ("active", tenant_filter(), ("created_at", RangeDateTimeFilter))
    search_fields = ("url", "description")
    ordering = ("-created_at", "-id")
    fieldsets = (
        (None, {"fields": ("address", "state", "event_chips", "tenant", "description")}),
        ("Health", {"fields": ("pace", "consecutive_failures", "failed_deliveries", "failing_since")}),
        ("Signature", {"fields": ("secret_hint", "previous_secret_until")}),
        ("Life", {"fields": ("identifier", "created_at", "updated_at", "disabled_at", "deleted_at")}),
    )
    readonly_fields = ("address", "state", "event_chips", "identifier")

    short_address = display(lambda self, row: code(shortened(row.url)), description="URL", ordering="url")
    address = display(lambda self, row: code(row.url), description="URL")
    event_chips = display(lambda self, row: chips(row.events), description="events")
    identifier = display(lambda self, row: code(row.pk), description="ID")

    @display(description="state", ordering="active")
    def state(self, webhook: Webhook) -> str:
        if webhook.deleted_at is not None:
            return chip("deleted")
        if webhook.disabled_at is not None:
            return chip("disabled by the service", "danger")
        if not webhook.active:
            return chip("switched off", "warning")
        return chip("failing", "danger") if webhook.is_failing else chip("active", "success")


class AttemptInline(ScopedInline):
    model = Attempt
    verbose_name_plural = "attempts"
    fields = ("number", "started_at", "outcome", "took", "answer")
    readonly_fields = fields
    ordering = ("number", "id")

    answer = display(lambda self, row: block(row.response_body or row.error), description="answer")
    took = display(
        lambda self, row: EMPTY if row.duration_ms is None else f"{row.duration_ms} ms", description="took"
    )

    @display(description="outcome")
    def outcome(self, attempt: Attempt) -> str:
        if attempt.response_status is None:
            return chip(attempt.error or "under way", "danger" if attempt.error else "info")
        good = 200 <= attempt.response_status < 300
        return chip(attempt.response_status, "success" if good else "danger")


OF_THIS_WEBHOOK = RelatedLink(
    "All of this webhook", "outbox", "webhooks_delivery", "webhook__id__exact", lambda row: row.webhook_id
)


@admin.register(Delivery)
class DeliveryAdmin(HistoryAdmin):
    tenant_field = "webhook__tenant_id"
    confirmed_actions = (redeliver,)
    related_links = (OF_THIS_WEBHOOK,)
    inlines = (AttemptInline,)
    list_display = ("created_at", "event", "state", "tries", "short_address", "tenant", "next_attempt_at")
    list_select_related = ("webhook__tenant", "message")
    list_filter = (
        ("status", ChoicesDropdownFilter),
        ("trigger", ChoicesDropdownFilter),
        tenant_filter("webhook__tenant_id"),
        ("created_at", RangeDateTimeFilter),
    )
    search_fields = ("webhook__url", "message__event__exact")
    search_ids = ("pk", "message_id", "webhook_id")
    search_help_text = "URL, event name or an ID"
    fieldsets = (
        (None, {"fields": ("event", "state", "tries", "trigger", "address", "tenant")}),
        ("Times", {"fields": ("created_at", "next_attempt_at", "completed_at")}),
        ("Message", {"fields": ("message_id", "body")}),
    )
    readonly_fields = ("event", "state", "tries", "address", "tenant", "message_id", "body")

    state = display(lambda self, row: status_chip(row.status), description="status", ordering="status")
    address = display(lambda self, row: code(row.webhook.url), description="URL")
    tenant = display(lambda self, row: visible(row.webhook.tenant), description="tenant")
    message_id = display(lambda self, row: code(row.message_id), description="event ID")
    body = display(lambda self, row: body_of(row.message), description="body as sent")

    event = display(
        lambda self, row: chip(row.message.event, verbatim=True),
        description="event",
        ordering="message__event",
    )
    tries = display(
        lambda self, row: f"{row.attempt_count} of {row.max_attempts}",
        description="attempts",
        ordering="attempt_count",
    )
    short_address = display(
        lambda self, row: code(shortened(row.webhook.url, 40)), description="URL", ordering="webhook__url"
    )


@admin.register(Message)
class MessageAdmin(HistoryAdmin):
    related_links = (RelatedLink("Deliveries", "outbox", "webhooks_delivery", "message__id__exact"),)
    list_display = ("created_at", "event_chip", "tenant", "identifier")
    list_select_related = ("tenant",)
    list_filter = (tenant_filter(), ("created_at", RangeDateTimeFilter))
    fieldsets = ((None, {"fields": ("created_at", "event_chip", "tenant", "identifier", "text")}),)
    readonly_fields = ("event_chip", "identifier", "text")

    event_chip = display(
        lambda self, row: chip(row.event, verbatim=True), description="event", ordering="event"
    )
    identifier = display(lambda self, row: code(row.pk), description="ID")
    text = display(lambda self, row: body_of(row), description="body")


@admin.register(Attempt)
class AttemptAdmin(HistoryAdmin):
    tenant_field = "delivery__webhook__tenant_id"
    related_links = ()
    list_display = ("started_at", "short_url", "number", "response_status", "duration_ms", "error")
    list_filter = (tenant_filter("delivery__webhook__tenant_id"), ("started_at", RangeDateTimeFilter))
    search_fields = ("url", "error")
    search_ids = ("pk", "delivery_id")
    ordering = ("-started_at", "-id")
    fieldsets = (
        (None, {"fields": ("delivery", "number", "url_code", "started_at", "duration_ms")}),
        ("Answer", {"fields": ("response_status", "error", "answer")}),
    )
    readonly_fields = ("url_code", "answer")

    short_url = display(lambda self, row: code(shortened(row.url)), description="URL", ordering="url")
    url_code = display(lambda self, row: code(row.url), description="URL")
    answer = display(lambda self, row: block(row.response_body), description="answer")
