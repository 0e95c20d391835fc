"""Webhooks and their deliveries."""

from collections.abc import Sequence
from datetime import datetime

from agentid.client import answers
from agentid.client.operation import Group, S, listing, operation
from agentid.client.records import Page
from agentid.client.request import UNSET, Request, Unset, as_json, changed, given, path
from agentid.client.results.webhooks import Delivery, Recovered, Webhook, WebhookWithSecret


class Webhooks(Group[S]):
    """Webhooks and their deliveries."""

    @operation("listWebhooks")
    def list(self) -> Request[tuple[Webhook, ...]]:
        """List webhooks, newest first."""
        return Request("GET", "/v1/webhooks", answers.listed(Webhook))

    @operation("createWebhook")
    def create(
        self, *, url: str, events: Sequence[str], description: str | None = None, idempotency_key: str = ""
    ) -> Request[WebhookWithSecret]:
        """Register a webhook."""
        return Request(
            "POST",
            "/v1/webhooks",
            answers.data(WebhookWithSecret),
            **as_json(given(description=description, url=url, events=events)),
            key=idempotency_key,
        )

    @operation("getWebhook")
    def get(self, webhook_id: str) -> Request[Webhook]:
        """Fetch a webhook."""
        return Request("GET", path("/v1/webhooks/{}", webhook_id), answers.data(Webhook))

    @operation("updateWebhook")
    def update(
        self,
        webhook_id: str,
        *,
        description: str | Unset | None = UNSET,
        url: str | Unset = UNSET,
        events: Sequence[str] | Unset = UNSET,
        active: bool | Unset = UNSET,
    ) -> Request[Webhook]:
        """Edit a webhook."""
        return Request(
            "PATCH",
            path("/v1/webhooks/{}", webhook_id),
            answers.data(Webhook),
            **as_json(changed(description=description, url=url, events=events, active=active)),
        )

    @operation("deleteWebhook")
    def delete(self, webhook_id: str) -> Request[None]:
        """Delete a webhook."""
        return Request("DELETE", path("/v1/webhooks/{}", webhook_id), answers.nothing, repeatable=True)

    @listing("listWebhookDeliveries")
    def deliveries(
        self,
        webhook_id: str,
        *,
        before: datetime | str | None = None,
        event: str | None = None,
        limit: int | None = None,
        status: str | None = None,
    ) -> Request[Page[Delivery]]:
        """A webhook's delivery history, newest first."""
        return Request(
            "GET",
            path("/v1/webhooks/{}/deliveries", webhook_id),
            answers.page(Delivery),
            query=given(before=before, event=event, limit=limit, status=status),
        )

    @operation("redeliverWebhookDelivery")
    def redeliver(self, webhook_id: str, delivery_id: str, *, idempotency_key: str = "") -> Request[Delivery]:
        """Send a past delivery's event again."""
        return Request(
            "POST",
            path("/v1/webhooks/{}/deliveries/{}/redeliver", webhook_id, delivery_id),
            answers.data(Delivery),
            key=idempotency_key,
        )

    @operation("recoverWebhook")
    def recover(self, webhook_id: str, *, since: datetime, idempotency_key: str = "") -> Request[Recovered]:
        """Send everything again that has failed since a time."""
        return Request(
            "POST",
            path("/v1/webhooks/{}/recover", webhook_id),
            answers.data(Recovered),
            **as_json(given(since=since)),
            key=idempotency_key,
        )

    @operation("rotateWebhookSecret")
    def rotate_secret(
        self, webhook_id: str, *, overlap_seconds: int | None = None, idempotency_key: str = ""
    ) -> Request[WebhookWithSecret]:
        """Give a webhook a new secret."""
        return Request(
            "POST",
            path("/v1/webhooks/{}/rotate-secret", webhook_id),
            answers.data(WebhookWithSecret),
            **as_json(given(overlap_seconds=overlap_seconds)),
            key=idempotency_key,
        )

    @operation("testWebhook")
    def test(self, webhook_id: str, *, idempotency_key: str = "") -> Request[Delivery]:
        """Send a test event."""
        return Request(
            "POST", path("/v1/webhooks/{}/test", webhook_id), answers.data(Delivery), key=idempotency_key
        )
