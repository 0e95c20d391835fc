"""Webhooks and the history of what was sent to them, in the console. Secrets are shown to nobody."""

from django.contrib import admin
from django.forms import Form
from unfold.decorators import display
from unfold.paginator import InfinitePaginator

from compliance.console import ConfirmedAction, RelatedLink, ScopedInline, TenantScopedAdmin
from compliance.console.access import DEVELOPERS
from compliance.console.admin import AUDIT_TRAIL
from compliance.console.display import EMPTY, block, chip, chips, code, shortened, status_chip, visible
from compliance.console.filters import ChoicesDropdownFilter, RangeDateTimeFilter, tenant_filter
from webhooks import console_actions as actions
from webhooks.models import Attempt, Delivery, Message, Webhook

WEBHOOK_ACTIONS = (
    ConfirmedAction(
        name="test",
        label="Send test",
        icon="send",
        explanation="Queues a signed webhook.test message to this endpoint alone.",
        run=actions.send_test,
        is_offered=lambda webhook: webhook.is_open,
        roles=DEVELOPERS,
        form_class=Form,
    ),
    ConfirmedAction(
        name="recover",
        label="Redeliver failed",
        icon="replay",
        explanation="Sends each message whose last delivery failed once more, oldest first, unchanged.",
        run=actions.redeliver_failed,
        is_offered=lambda webhook: webhook.is_open,
        roles=DEVELOPERS,
        form_class=actions.SinceForm,
    ),
    ConfirmedAction(
        name="rotate",
        label="Rotate secret",
        icon="autorenew",
        explanation=(
            "Every attempt from now on, retries included, is signed with a new secret that is shown once. "
            "The old one signs beside it for the hours that you choose: none, if it has leaked."
        ),
        run=actions.rotate_secret,
        is_offered=lambda webhook: webhook.deleted_at is None,
        roles=DEVELOPERS,
        form_class=actions.OverlapForm,
        is_destructive=True,
    ),
    ConfirmedAction(
        name="off",
        label="Switch off",
        icon="toggle_off",
        explanation="Nothing more is sent, and what waits is cancelled. It can be switched on again.",
        run=actions.switch_off,
        is_offered=lambda webhook: webhook.is_open,
        roles=DEVELOPERS,
        form_class=Form,
        is_destructive=True,
    ),
    ConfirmedAction(
        name="on",
        label="Switch on",
        icon="toggle_on",
        explanation="Events from now on are sent again; those in between are not.",
        run=actions.switch_on,
        is_offered=lambda webhook: webhook.deleted_at is None and not webhook.active,
        roles=DEVELOPERS,
        form_class=Form,
    ),
)
REDELIVER = ConfirmedAction(
    name="redeliver",
    label="Redeliver",
    icon="replay",
    explanation="Sends the same message, id and bytes, once more, as a delivery of its own.",
    run=actions.redeliver,
    is_offered=lambda delivery: delivery.is_finished and delivery.webhook.is_open,
    roles=DEVELOPERS,
    form_class=Form,
)


@admin.register(Webhook)
class WebhookAdmin(TenantScopedAdmin):
    """Endpoints, deleted ones included: their history stays."""

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
        (
            None,
            {"fields": ("address", "state", "event_chips", "tenant", "description")},
        ),
        ("Health", {"fields": ("pace", "consecutive_failures", "failed_deliveries", "failing_since")}),
        ("Signature", {"fields": ("secret_hint", "previous_secret_until")}),
        ("Life", {"fields": ("identifier", "created_at", "updated_at", "disabled_at", "deleted_at")}),
    )
    readonly_fields = ("address", "state", "event_chips", "identifier")

    @display(description="URL", ordering="url")
    def short_address(self, webhook: Webhook) -> str:
        return code(shortened(webhook.url))

    @display(description="URL")
    def address(self, webhook: Webhook) -> str:
        return code(webhook.url)

    @display(description="state", ordering="active")
    def state(self, webhook: Webhook) -> str:
        if webhook.deleted_at is not None:
            return chip("deleted")
        if webhook.disabled_at is not None:
            return chip("disabled by the service", "danger")
        if not webhook.active:
            return chip("switched off", "warning")
        return chip("failing", "danger") if webhook.is_failing else chip("active", "success")

    @display(description="events")
    def event_chips(self, webhook: Webhook) -> str:
        return chips(webhook.events)

    @display(description="ID")
    def identifier(self, webhook: Webhook) -> str:
        return code(webhook.pk)


class AttemptInline(ScopedInline):
    """Each try of the delivery, with what the other side answered."""

    model = Attempt
    verbose_name_plural = "attempts"
    fields = ("number", "started_at", "outcome", "took", "answer")
    readonly_fields = fields
    ordering = ("number", "id")

    @display(description="outcome")
    def outcome(self, attempt: Attempt) -> str:
        if attempt.response_status is None:
            return chip(attempt.error or "under way", "danger" if attempt.error else "info")
        good = 200 <= attempt.response_status < 300
        return chip(attempt.response_status, "success" if good else "danger")

    @display(description="took")
    def took(self, attempt: Attempt) -> str:
        return EMPTY if attempt.duration_ms is None else f"{attempt.duration_ms} ms"

    @display(description="answer")
    def answer(self, attempt: Attempt) -> str:
        return block(attempt.response_body or attempt.error)


@admin.register(Delivery)
class DeliveryAdmin(TenantScopedAdmin):
    """One message on its way to one webhook."""

    tenant_field = "webhook__tenant_id"
    confirmed_actions = (REDELIVER,)
    related_links = (
        RelatedLink(
            "All of this webhook",
            "outbox",
            "webhooks_delivery",
            "webhook__id__exact",
            lambda row: row.webhook_id,
        ),
    )
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
    ordering = ("-created_at", "-id")
    paginator = InfinitePaginator
    show_full_result_count = False
    fieldsets = (
        (None, {"fields": ("event", "state", "tries", "trigger", "address", "tenant")}),
        ("Times", {"fields": ("created_at", "next_attempt_at", "completed_at")}),
        ("Message", {"fields": ("message_id", "body")}),
    )
    readonly_fields = ("event", "state", "tries", "address", "tenant", "message_id", "body")

    @display(description="event", ordering="message__event")
    def event(self, delivery: Delivery) -> str:
        return chip(delivery.message.event, verbatim=True)

    @display(description="status", ordering="status")
    def state(self, delivery: Delivery) -> str:
        return status_chip(delivery.status)

    @display(description="attempts", ordering="attempt_count")
    def tries(self, delivery: Delivery) -> str:
        return f"{delivery.attempt_count} of {delivery.max_attempts}"

    @display(description="URL", ordering="webhook__url")
    def short_address(self, delivery: Delivery) -> str:
        return code(shortened(delivery.webhook.url, 40))

    @display(description="URL")
    def address(self, delivery: Delivery) -> str:
        return code(delivery.webhook.url)

    @display(description="tenant")
    def tenant(self, delivery: Delivery) -> str:
        return visible(delivery.webhook.tenant)

    @display(description="event ID")
    def message_id(self, delivery: Delivery) -> str:
        return code(delivery.message_id)

    @display(description="body as sent")
    def body(self, delivery: Delivery) -> str:
        return text_of(delivery.message)


@admin.register(Message)
class MessageAdmin(TenantScopedAdmin):
    """What was published, as it is sent."""

    related_links = (RelatedLink("Deliveries", "outbox", "webhooks_delivery", "message__id__exact"),)
    list_display = ("created_at", "event_chip", "tenant", "identifier")
    list_select_related = ("tenant",)
    list_filter = (tenant_filter(), ("created_at", RangeDateTimeFilter))
    ordering = ("-created_at", "-id")
    paginator = InfinitePaginator
    show_full_result_count = False
    fieldsets = ((None, {"fields": ("created_at", "event_chip", "tenant", "identifier", "text")}),)
    readonly_fields = ("event_chip", "identifier", "text")

    @display(description="event", ordering="event")
    def event_chip(self, message: Message) -> str:
        return chip(message.event, verbatim=True)

    @display(description="ID")
    def identifier(self, message: Message) -> str:
        return code(message.pk)

    @display(description="body")
    def text(self, message: Message) -> str:
        return text_of(message)


@admin.register(Attempt)
class AttemptAdmin(TenantScopedAdmin):
    """Tries by themselves, to look for slow or failing receivers."""

    tenant_field = "delivery__webhook__tenant_id"
    related_links = ()
    list_display = ("started_at", "short_url", "number", "response_status", "duration_ms", "error")
    list_filter = (tenant_filter("delivery__webhook__tenant_id"), ("started_at", RangeDateTimeFilter))
    search_fields = ("url", "error")
    search_ids = ("pk", "delivery_id")
    ordering = ("-started_at", "-id")
    paginator = InfinitePaginator
    show_full_result_count = False
    fieldsets = (
        (None, {"fields": ("delivery", "number", "url_code", "started_at", "duration_ms")}),
        ("Answer", {"fields": ("response_status", "error", "answer")}),
    )
    readonly_fields = ("url_code", "answer")

    @display(description="URL", ordering="url")
    def short_url(self, attempt: Attempt) -> str:
        return code(shortened(attempt.url))

    @display(description="URL")
    def url_code(self, attempt: Attempt) -> str:
        return code(attempt.url)

    @display(description="answer")
    def answer(self, attempt: Attempt) -> str:
        return block(attempt.response_body)


def text_of(message: Message) -> str:
    """The body's bytes as text."""
    return block(bytes(message.body).decode("utf-8", "replace"))
