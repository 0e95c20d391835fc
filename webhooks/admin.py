"""Webhooks and their deliveries in the console; a secret is shown once, when it is made."""

from typing import Any

from django.contrib import admin
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import TabularInline
from unfold.decorators import display
from unfold.paginator import InfinitePaginator

from auditlog.actors.requests import actor_of
from compliance.console.access import EVERYONE, WEBHOOK_KEEPERS, access_of
from compliance.console.admin import (
    AUDIT_TRAIL,
    ReadOnly,
    RelatedLink,
    TenantScopedAdmin,
)
from compliance.console.display import (
    EMPTY,
    block,
    chip,
    chips,
    code,
    column,
    moment,
    shortened,
    status_chip,
    visible,
)
from compliance.console.filters import (
    ChoicesDropdownFilter,
    ConditionFilter,
    RangeDateTimeFilter,
    TenantFilter,
)
from compliance.console.navigation import NavigationLine
from compliance.console.secrets import refuse_repeated, secret_page
from compliance.core.clock import now
from compliance.core.identifiers import parse_id
from webhooks import services
from webhooks.console_actions import WEBHOOK_ACTIONS, WebhookForm, redeliver
from webhooks.models import Attempt, Delivery, DeliveryStatus, Webhook
from webhooks.vocabulary import EventName

EDITABLE = ("url", "events", "format", "description")
# Fewer failures in a hundred than a working endpoint has during a release.
GOOD_RATE, POOR_RATE = 0.99, 0.9
OUTCOMES = 100
"""The deliveries that a webhook's rate of success is of."""
MOST_WEBHOOKS = 10_000


def success_chip(outcomes: list[str]) -> SafeString | str:
    """Show the share of successes among finished deliveries."""
    finished = [each for each in outcomes if each in (DeliveryStatus.SUCCEEDED, DeliveryStatus.FAILED)]
    if not finished:
        return EMPTY
    rate = finished.count(DeliveryStatus.SUCCEEDED) / len(finished)
    colour = "success" if rate >= GOOD_RATE else "warning" if rate >= POOR_RATE else "danger"
    return chip(f"{int(100 * rate)} % of {len(finished)}", colour, verbatim=True)


class DeletedFilter(ConditionFilter):
    """Leaves deleted webhooks out, unless they are asked for."""

    title = parameter_name = "deleted"
    conditions = {"only": ("deleted ones", Q(deleted_at__isnull=False))}
    all_option = ("", "not deleted")

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if parse_id(request.GET.get("q", "").strip()):
            return queryset
        return queryset.filter(deleted_at__isnull=self.value() != "only")


@admin.register(Webhook)
class WebhookAdmin(TenantScopedAdmin):
    navigation = NavigationLine("Integration", 1, "Webhooks", "webhook")
    form = WebhookForm
    edit_roles = WEBHOOK_KEEPERS
    edited = EDITABLE
    add_roles = WEBHOOK_KEEPERS
    secret_fields = frozenset({"secret", "previous_secret"})
    confirmed_actions = WEBHOOK_ACTIONS
    related_links = (
        RelatedLink("Deliveries", "outbox", "webhooks_delivery", "webhook__id__exact"),
        AUDIT_TRAIL,
    )
    list_display = (
        "short_address",
        "state",
        "success",
        "last_delivery",
        "event_chips",
        "tenant",
        "created_at",
    )
    list_select_related = ("tenant",)
    list_filter = ("active", DeletedFilter, TenantFilter, ("created_at", RangeDateTimeFilter))
    search_fields = ("url", "description")
    fieldsets = (
        (None, {"fields": ("address", "state", "event_chips", "tenant", "description")}),
        ("Health", {"fields": ("pace", "consecutive_failures", "failed_deliveries", "failing_since")}),
        ("Signature", {"fields": ("secret_hint", "previous_secret_until")}),
        ("Life", {"fields": ("identifier", "created_at", "updated_at", "disabled_at", "deleted_at")}),
    )
    readonly_fields = ("address", "state", "event_chips", "identifier")
    add_fieldsets = ((None, {"fields": ("tenant", *EDITABLE)}),)
    edit_fieldsets = (
        (None, {"fields": EDITABLE}),
        ("Webhook", {"fields": ("state", "tenant")}),
        *fieldsets[1:],
    )

    success = column("success", lambda row: success_chip(row.outcomes))
    short_address = column("URL", lambda row: code(shortened(row.url)), ordering="url")
    address = column("URL", lambda row: code(row.url))
    event_chips = column("events", lambda row: chips(row.events))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return webhooks with the statuses of their last deliveries, newest first, as `outcomes`."""
        own = Delivery.objects.filter(tenant=OuterRef("tenant"), webhook=OuterRef("pk"))
        newest = own.order_by("-created_at", "-id")
        rows: Any = super().get_queryset(request)
        outcomes = ArraySubquery(newest.values("status")[:OUTCOMES])
        last: Any = Subquery(newest.values("created_at")[:1])
        found: QuerySet[Any] = rows.annotate(outcomes=outcomes, last_delivery_at=last)
        return found

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and obj.deleted_at is None

    def save_model(self, request: HttpRequest, obj: Webhook, form: Any, change: bool) -> None:
        actor = actor_of(request)
        given = {name: form.cleaned_data[name] for name in EDITABLE}
        if change:
            services.update(tenant_id=obj.tenant_id, webhook_id=obj.pk, changes=given, actor=actor, now=now())
        else:
            refuse_repeated(request)
            made = services.create(tenant_id=obj.tenant_id, **given, actor=actor, now=now())
            obj.pk = made.webhook.pk
            request.secret_page = secret_page(  # type: ignore[attr-defined]
                request,
                label="Webhook secret",
                secret=made.secret,
                explanation="Deliveries are signed with this secret; verify its signature in the receiver.",
                next_url=self.row_url(obj),
            )

    @display(description="last delivery")
    def last_delivery(self, webhook: Any) -> SafeString | str:
        if not webhook.outcomes:
            return EMPTY
        return format_html("{} {}", moment(webhook.last_delivery_at), status_chip(webhook.outcomes[0]))

    @display(description="state", ordering="active")
    def state(self, webhook: Webhook) -> str:
        if webhook.deleted_at is not None:
            return chip("deleted")
        if webhook.disabled_at is not None:
            return chip("disabled by the service", "danger")
        if not webhook.active:
            return chip("switched off", "warning")
        return chip("failing", "danger") if webhook.is_failing else chip("active", "success")


class AttemptInline(ReadOnly, TabularInline):
    model = Attempt
    extra, can_delete, show_change_link = 0, False, False
    verbose_name_plural = "attempts"
    fields = ("number", "started_at", "outcome", "took", "answer")
    readonly_fields = fields
    ordering = ("number", "id")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Show them to all who see the delivery."""
        return access_of(request).may(EVERYONE)

    answer = column("answer", lambda row: block(row.response_body or row.error))
    took = column("took", lambda row: EMPTY if row.duration_ms is None else f"{row.duration_ms} ms")

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
class DeliveryAdmin(TenantScopedAdmin):
    """A long list: without a count of its rows, and in one order (UUIDv7, so by time): another sorts all."""

    ordering = ("-id",)
    sortable_by = ()
    paginator = InfinitePaginator
    show_full_result_count = False
    navigation = NavigationLine("Integration", 2, "Deliveries", "outbox")
    confirmed_actions = (redeliver,)
    related_links = (OF_THIS_WEBHOOK,)
    inlines = (AttemptInline,)
    list_display = ("created_at", "event", "state", "tries", "short_address", "tenant", "next_attempt_at")
    list_select_related = ("tenant", "webhook", "message")
    list_filter = (
        ("status", ChoicesDropdownFilter),
        ("trigger", ChoicesDropdownFilter),
        TenantFilter,
        ("created_at", RangeDateTimeFilter),
    )
    # Shows the field: `get_search_results` searches.
    search_fields = ("webhook__url",)
    search_ids = ("pk", "message_id", "webhook_id")
    search_help_text = "URL, event name or an ID"
    fieldsets = (
        (None, {"fields": ("event", "state", "tries", "trigger", "address", "tenant")}),
        ("Times", {"fields": ("created_at", "next_attempt_at", "completed_at")}),
        ("Message", {"fields": ("message_id", "body")}),
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find an event's name, or the webhooks with such a URL: they are few, and each has an index."""
        text = search_term.strip()
        if not text or "\x00" in text or parse_id(text) is not None:
            return super().get_search_results(request, queryset, search_term)
        if text in EventName.values:
            return queryset.filter(message__event=text), False
        shown: Any = self.admin_site.get_model_admin(Webhook).get_queryset(request)
        found = shown.filter(url__icontains=text).order_by("pk").values_list("pk", flat=True)
        return queryset.filter(webhook_id__in=list(found[:MOST_WEBHOOKS])), False

    state = column("status", lambda row: status_chip(row.status), ordering="status")
    address = column("URL", lambda row: code(row.webhook.url))
    tenant = column("tenant", lambda row: visible(row.tenant))
    message_id = column("event ID", lambda row: code(row.message_id))
    body = column("body as sent", lambda row: block(bytes(row.message.body).decode("utf-8", "replace")))

    event = column("event", lambda row: chip(row.message.event, verbatim=True), ordering="message__event")
    tries = column(
        "attempts", lambda row: f"{row.attempt_count} of {row.max_attempts}", ordering="attempt_count"
    )
    short_address = column("URL", lambda row: code(shortened(row.webhook.url, 40)), ordering="webhook__url")
