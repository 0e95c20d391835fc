"""`/v1/webhooks` and `/v1/webhooks/{id}/deliveries`."""

from typing import Any

from rest_framework.response import Response

from auditlog.actors.requests import caller_of
from compliance.api.gate import Scope
from compliance.api.pagination import newest_first, ok, read_choice
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import enveloped
from compliance.api.rest.views import ApiViewSet, listing, operation, validated
from webhooks import openapi, serializers, services
from webhooks.models import Delivery, DeliveryStatus, Webhook
from webhooks.serializers import DeliverySerializer, WebhookSerializer
from webhooks.vocabulary import DELIVERABLE_EVENTS

NOT_FOUND = "Webhook not found"
INACTIVE = "Webhook is not active"


class WebhookViewSet(ApiViewSet):
    """The tenant's webhooks."""

    schema_tag = "Webhooks"

    @operation(
        "createWebhook",
        "Register a webhook",
        Scope.WEBHOOKS_WRITE,
        serializers.WebhookWithSecretSerializer,
        status=201,
        description=openapi.CREATE_TEXT,
        request=serializers.CreateWebhookSerializer,
        examples=[openapi.CREATION, openapi.WITH_SECRET],
        callbacks=[openapi.DELIVERIES],
        repeats=True,
    )
    def create(self, request: ApiRequest) -> Response:
        fields = validated(serializers.CreateWebhookSerializer, request)
        return ok(_with_secret(services.create(**fields, **caller_of(request))), status=201)

    @operation(
        "listWebhooks",
        "List webhooks, newest first",
        Scope.WEBHOOKS_READ,
        enveloped(WebhookSerializer, many=True),
    )
    def list(self, request: ApiRequest) -> Response:
        webhooks = Webhook.objects.for_tenant(request.auth.tenant_id).order_by("-created_at", "-id")
        return ok(WebhookSerializer(webhooks, many=True).data)

    @operation("getWebhook", "Fetch a webhook", Scope.WEBHOOKS_READ, WebhookSerializer, e404=NOT_FOUND)
    def retrieve(self, request: ApiRequest, webhook_id: str) -> Response:
        webhook = Webhook.objects.for_tenant(request.auth.tenant_id).find(webhook_id)
        return ok(WebhookSerializer(webhook).data)

    @operation(
        "updateWebhook",
        "Edit a webhook",
        Scope.WEBHOOKS_WRITE,
        WebhookSerializer,
        description=openapi.UPDATE_TEXT,
        request=serializers.UpdateWebhookSerializer,
        examples=[openapi.CHANGE],
        e404=NOT_FOUND,
    )
    def partial_update(self, request: ApiRequest, webhook_id: str) -> Response:
        changes = validated(serializers.UpdateWebhookSerializer, request)
        webhook = services.update(webhook_id=webhook_id, changes=changes, **caller_of(request))
        return ok(WebhookSerializer(webhook).data)

    @operation(
        "deleteWebhook",
        "Delete a webhook",
        Scope.WEBHOOKS_WRITE,
        status=204,
        description="Deliveries that wait are cancelled.",
        e404=NOT_FOUND,
    )
    def destroy(self, request: ApiRequest, webhook_id: str) -> Response:
        services.delete(webhook_id=webhook_id, **caller_of(request))
        return Response(status=204)

    @operation(
        "rotateWebhookSecret",
        "Give a webhook a new secret",
        Scope.WEBHOOKS_WRITE,
        serializers.WebhookWithSecretSerializer,
        description=openapi.ROTATE_TEXT,
        request=serializers.RotateSecretSerializer,
        examples=[openapi.LEAKED, openapi.WITH_SECRET],
        repeats=True,
        e404=NOT_FOUND,
    )
    def rotate_secret(self, request: ApiRequest, webhook_id: str) -> Response:
        options = validated(serializers.RotateSecretSerializer, request)
        rotated = services.rotate_secret(webhook_id=webhook_id, **options, **caller_of(request))
        return ok(_with_secret(rotated))

    @operation(
        "testWebhook",
        "Send a test event",
        Scope.WEBHOOKS_WRITE,
        DeliverySerializer,
        status=202,
        description=openapi.TEST_TEXT,
        request=None,
        repeats=True,
        e404=NOT_FOUND,
        e422=INACTIVE,
    )
    def send_test(self, request: ApiRequest, webhook_id: str) -> Response:
        delivery = services.send_test(webhook_id=webhook_id, **caller_of(request))
        return ok(DeliverySerializer(delivery).data, status=202)

    @operation(
        "recoverWebhook",
        "Send everything again that has failed since a time",
        Scope.WEBHOOKS_WRITE,
        serializers.RecoveredSerializer,
        status=202,
        description=openapi.RECOVER_TEXT,
        request=serializers.RecoverSerializer,
        examples=[openapi.RECOVERY, openapi.RECOVERED],
        repeats=True,
        e404=NOT_FOUND,
        e422=INACTIVE,
    )
    def recover(self, request: ApiRequest, webhook_id: str) -> Response:
        since = validated(serializers.RecoverSerializer, request)["since"]
        again = services.redeliver_failed(webhook_id=webhook_id, since=since, **caller_of(request))
        done = {"webhook_id": webhook_id, "since": since, "redelivered": len(again)}
        return ok(serializers.RecoveredSerializer(done).data, status=202)


class DeliveryViewSet(ApiViewSet):
    """The deliveries of one webhook."""

    schema_tag = "Webhooks"

    @listing(
        "listWebhookDeliveries",
        "A webhook's delivery history, newest first",
        Scope.WEBHOOKS_READ,
        DeliverySerializer,
        parameters=[openapi.EVENT_FILTER, openapi.STATUS_FILTER],
        examples=[openapi.HISTORY],
        e404=NOT_FOUND,
    )
    def list(self, request: ApiRequest, webhook_id: str) -> Response:
        webhook = Webhook.objects.for_tenant(request.auth.tenant_id).find(webhook_id)
        params = request.query_params
        deliveries = Delivery.objects.to_webhook(webhook).where(
            message__event=read_choice(params, "event", DELIVERABLE_EVENTS),
            status=read_choice(params, "status", DeliveryStatus.values),
        )
        found = deliveries.select_related("message").prefetch_related("attempts")
        return newest_first(found, request, DeliverySerializer.all_of, field="created_at")

    @operation(
        "redeliverWebhookDelivery",
        "Send a past delivery's event again",
        Scope.WEBHOOKS_WRITE,
        DeliverySerializer,
        status=202,
        description=openapi.REDELIVER_TEXT,
        request=None,
        repeats=True,
        e404="Delivery not found",
        e422="Delivery is still under way",
    )
    def redeliver(self, request: ApiRequest, webhook_id: str, delivery_id: str) -> Response:
        delivery = services.redeliver(webhook_id=webhook_id, delivery_id=delivery_id, **caller_of(request))
        return ok(DeliverySerializer(delivery).data, status=202)


def _with_secret(new: services.NewSecret) -> dict[str, Any]:
    return {**WebhookSerializer(new.webhook).data, "secret": new.secret}
