"""`/v1/webhooks` and `/v1/webhooks/{id}/deliveries`."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from auditlog.actors.requests import caller_of
from compliance.api.gate import Scope
from compliance.api.idempotency import idempotent
from compliance.api.pagination import newest_first, ok, read_choice
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import BEFORE, IDEMPOTENCY_KEY, KEYED, LIMIT, enveloped, errors, paged
from compliance.api.rest.views import ApiViewSet, validated
from webhooks import openapi, serializers, services
from webhooks.models import Delivery, DeliveryStatus, Webhook
from webhooks.serializers import DeliverySerializer, WebhookSerializer
from webhooks.vocabulary import DELIVERABLE_EVENTS

NOT_FOUND = "Webhook not found"
# Errors of actions that repeat a request's answer and send something to the webhook.
SENDING_ERRORS = errors(*KEYED, 409, e404=NOT_FOUND, e422="Webhook is not active")


class WebhookViewSet(ApiViewSet):
    """The tenant's webhooks."""

    schema_tag = "Webhooks"
    required_scopes: ClassVar = {
        **dict.fromkeys(("list", "retrieve"), Scope.WEBHOOKS_READ),
        **dict.fromkeys(("create", "partial_update", "destroy"), Scope.WEBHOOKS_WRITE),
        **dict.fromkeys(("rotate_secret", "send_test", "recover"), Scope.WEBHOOKS_WRITE),
    }

    @extend_schema(
        operation_id="createWebhook",
        summary="Register a webhook",
        description=openapi.CREATE_TEXT,
        request=serializers.CreateWebhookSerializer,
        parameters=[IDEMPOTENCY_KEY],
        examples=[openapi.CREATION, openapi.WITH_SECRET],
        callbacks=[openapi.DELIVERIES],
        responses={201: enveloped(serializers.WebhookWithSecretSerializer), **errors(*KEYED, 409)},
    )
    @idempotent
    def create(self, request: ApiRequest) -> Response:
        fields = validated(serializers.CreateWebhookSerializer, request)
        return ok(_with_secret(services.create(**fields, **caller_of(request))), status=201)

    @extend_schema(
        operation_id="listWebhooks",
        summary="List webhooks, newest first",
        responses={200: enveloped(WebhookSerializer, many=True), **errors(*KEYED)},
    )
    def list(self, request: ApiRequest) -> Response:
        webhooks = Webhook.objects.for_tenant(request.auth.tenant_id).newest_first()
        return ok(WebhookSerializer(webhooks, many=True).data)

    @extend_schema(
        operation_id="getWebhook",
        summary="Fetch a webhook",
        parameters=[openapi.WEBHOOK_ID],
        responses={200: enveloped(WebhookSerializer), **errors(*KEYED, e404=NOT_FOUND)},
    )
    def retrieve(self, request: ApiRequest, webhook_id: str) -> Response:
        return ok(WebhookSerializer(_find(request, webhook_id)).data)

    @extend_schema(
        operation_id="updateWebhook",
        summary="Edit a webhook",
        description=openapi.UPDATE_TEXT,
        parameters=[openapi.WEBHOOK_ID],
        request=serializers.UpdateWebhookSerializer,
        examples=[openapi.CHANGE],
        responses={200: enveloped(WebhookSerializer), **errors(*KEYED, e404=NOT_FOUND)},
    )
    def partial_update(self, request: ApiRequest, webhook_id: str) -> Response:
        changes = validated(serializers.UpdateWebhookSerializer, request)
        webhook = services.update(webhook_id=webhook_id, changes=changes, **caller_of(request))
        return ok(WebhookSerializer(webhook).data)

    @extend_schema(
        operation_id="deleteWebhook",
        summary="Delete a webhook",
        description="Deliveries that wait are cancelled.",
        parameters=[openapi.WEBHOOK_ID],
        responses={204: None, **errors(*KEYED, e404=NOT_FOUND)},
    )
    def destroy(self, request: ApiRequest, webhook_id: str) -> Response:
        services.delete(webhook_id=webhook_id, **caller_of(request))
        return Response(status=204)

    @extend_schema(
        operation_id="rotateWebhookSecret",
        summary="Give a webhook a new secret",
        description=openapi.ROTATE_TEXT,
        parameters=[openapi.WEBHOOK_ID, IDEMPOTENCY_KEY],
        request=serializers.RotateSecretSerializer,
        examples=[openapi.LEAKED, openapi.WITH_SECRET],
        responses={
            200: enveloped(serializers.WebhookWithSecretSerializer),
            **errors(*KEYED, 409, e404=NOT_FOUND),
        },
    )
    @idempotent
    def rotate_secret(self, request: ApiRequest, webhook_id: str) -> Response:
        options = validated(serializers.RotateSecretSerializer, request)
        rotated = services.rotate_secret(webhook_id=webhook_id, **options, **caller_of(request))
        return ok(_with_secret(rotated))

    @extend_schema(
        operation_id="testWebhook",
        summary="Send a test event",
        description=openapi.TEST_TEXT,
        parameters=[openapi.WEBHOOK_ID, IDEMPOTENCY_KEY],
        request=None,
        responses={202: enveloped(DeliverySerializer), **SENDING_ERRORS},
    )
    @idempotent
    def send_test(self, request: ApiRequest, webhook_id: str) -> Response:
        delivery = services.send_test(webhook_id=webhook_id, **caller_of(request))
        return ok(DeliverySerializer(delivery).data, status=202)

    @extend_schema(
        operation_id="recoverWebhook",
        summary="Send everything again that has failed since a time",
        description=openapi.RECOVER_TEXT,
        parameters=[openapi.WEBHOOK_ID, IDEMPOTENCY_KEY],
        request=serializers.RecoverSerializer,
        examples=[openapi.RECOVERY, openapi.RECOVERED],
        responses={
            202: enveloped(serializers.RecoveredSerializer),
            **SENDING_ERRORS,
        },
    )
    @idempotent
    def recover(self, request: ApiRequest, webhook_id: str) -> Response:
        since = validated(serializers.RecoverSerializer, request)["since"]
        again = services.redeliver_failed(webhook_id=webhook_id, since=since, **caller_of(request))
        done = {"webhook_id": webhook_id, "since": since, "redelivered": len(again)}
        return ok(serializers.RecoveredSerializer(done).data, status=202)


class DeliveryViewSet(ApiViewSet):
    """The deliveries of one webhook."""

    schema_tag = "Webhooks"
    required_scopes: ClassVar = {"list": Scope.WEBHOOKS_READ, "redeliver": Scope.WEBHOOKS_WRITE}

    @extend_schema(
        operation_id="listWebhookDeliveries",
        summary="A webhook's delivery history, newest first",
        parameters=[openapi.WEBHOOK_ID, openapi.EVENT_FILTER, openapi.STATUS_FILTER, BEFORE, LIMIT],
        examples=[openapi.HISTORY],
        responses={200: paged(DeliverySerializer, tells_next=True), **errors(*KEYED, e404=NOT_FOUND)},
    )
    def list(self, request: ApiRequest, webhook_id: str) -> Response:
        own, params = Delivery.objects.to_webhook(_find(request, webhook_id)), request.query_params
        deliveries = own.where(
            message__event=read_choice(params, "event", DELIVERABLE_EVENTS),
            status=read_choice(params, "status", DeliveryStatus.values),
        )
        return newest_first(deliveries.with_history(), request, DeliverySerializer.all_of, field="created_at")

    @extend_schema(
        operation_id="redeliverWebhookDelivery",
        summary="Send a past delivery's event again",
        description=openapi.REDELIVER_TEXT,
        parameters=[openapi.WEBHOOK_ID, openapi.DELIVERY_ID, IDEMPOTENCY_KEY],
        request=None,
        responses={
            202: enveloped(DeliverySerializer),
            **errors(*KEYED, 409, e404="Delivery not found", e422="Delivery is still under way"),
        },
    )
    @idempotent
    def redeliver(self, request: ApiRequest, webhook_id: str, delivery_id: str) -> Response:
        delivery = services.redeliver(webhook_id=webhook_id, delivery_id=delivery_id, **caller_of(request))
        return ok(DeliverySerializer(delivery).data, status=202)


def _find(request: ApiRequest, webhook_id: str) -> Webhook:
    return Webhook.objects.for_tenant(request.auth.tenant_id).find(webhook_id)


def _with_secret(new: services.NewSecret) -> dict[str, Any]:
    return {**WebhookSerializer(new.webhook).data, "secret": new.secret}
