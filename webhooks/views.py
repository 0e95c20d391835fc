"""`/v1/webhooks`: register, read, list, edit, delete, test, rotate; their deliveries."""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from auditlog.vocabulary import Actor
from compliance.api.idempotency import idempotent
from compliance.api.pagination import keyset_page, read_choice, read_cursor, read_limit
from compliance.api.permissions import Scope
from compliance.api.requests import ApiRequest
from compliance.api.responses import ok, page
from compliance.api.schema import BEFORE, IDEMPOTENCY_KEY, KEYED, LIMIT, enveloped, errors, paged
from compliance.api.views import ApiViewSet, validated
from compliance.clock import now
from webhooks import descriptions, services
from webhooks.models import Delivery, DeliveryStatus, Webhook
from webhooks.serializers import (
    CreateWebhookSerializer,
    DeliverySerializer,
    RecoveredSerializer,
    RecoverSerializer,
    RotateSecretSerializer,
    UpdateWebhookSerializer,
    WebhookSerializer,
    WebhookWithSecretSerializer,
)
from webhooks.services import NewSecret, Registration
from webhooks.vocabulary import DELIVERABLE_EVENTS

NOT_FOUND = "Webhook not found"
INACTIVE = "Webhook is not active"


class WebhookViewSet(ApiViewSet):
    """The tenant's webhooks."""

    schema_tag = "Webhooks"
    required_scopes: ClassVar = {
        "create": Scope.WEBHOOKS_WRITE,
        "list": Scope.WEBHOOKS_READ,
        "retrieve": Scope.WEBHOOKS_READ,
        "partial_update": Scope.WEBHOOKS_WRITE,
        "destroy": Scope.WEBHOOKS_WRITE,
        "rotate_secret": Scope.WEBHOOKS_WRITE,
        "send_test": Scope.WEBHOOKS_WRITE,
        "recover": Scope.WEBHOOKS_WRITE,
    }

    @extend_schema(
        operation_id="createWebhook",
        summary="Register a webhook",
        description=descriptions.CREATE_TEXT,
        request=CreateWebhookSerializer,
        parameters=[IDEMPOTENCY_KEY],
        examples=[descriptions.CREATION, descriptions.WITH_SECRET],
        callbacks=[descriptions.DELIVERIES],
        responses={201: enveloped(WebhookWithSecretSerializer), **errors(*KEYED, 409)},
    )
    @idempotent
    def create(self, request: ApiRequest) -> Response:
        created = services.create(
            tenant_id=request.auth.tenant_id,
            registration=Registration(**validated(CreateWebhookSerializer, request)),
            actor=Actor.api_key(request.auth.id),
            now=now(),
        )
        return _with_secret(created, status=201)

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
        parameters=[descriptions.WEBHOOK_ID],
        responses={200: enveloped(WebhookSerializer), **errors(*KEYED, e404=NOT_FOUND)},
    )
    def retrieve(self, request: ApiRequest, webhook_id: str) -> Response:
        webhook = Webhook.objects.for_tenant(request.auth.tenant_id).find(webhook_id)
        return ok(WebhookSerializer(webhook).data)

    @extend_schema(
        operation_id="updateWebhook",
        summary="Edit a webhook",
        description=descriptions.UPDATE_TEXT,
        parameters=[descriptions.WEBHOOK_ID],
        request=UpdateWebhookSerializer,
        examples=[descriptions.CHANGE],
        responses={200: enveloped(WebhookSerializer), **errors(*KEYED, e404=NOT_FOUND)},
    )
    def partial_update(self, request: ApiRequest, webhook_id: str) -> Response:
        webhook = services.update(
            tenant_id=request.auth.tenant_id,
            webhook_id=webhook_id,
            changes=validated(UpdateWebhookSerializer, request),
            actor=Actor.api_key(request.auth.id),
            now=now(),
        )
        return ok(WebhookSerializer(webhook).data)

    @extend_schema(
        operation_id="deleteWebhook",
        summary="Delete a webhook",
        description="Deliveries that wait are cancelled.",
        parameters=[descriptions.WEBHOOK_ID],
        responses={204: None, **errors(*KEYED, e404=NOT_FOUND)},
    )
    def destroy(self, request: ApiRequest, webhook_id: str) -> Response:
        services.delete(
            tenant_id=request.auth.tenant_id,
            webhook_id=webhook_id,
            actor=Actor.api_key(request.auth.id),
            now=now(),
        )
        return Response(status=204)

    @extend_schema(
        operation_id="rotateWebhookSecret",
        summary="Give a webhook a new secret",
        description=descriptions.ROTATE_TEXT,
        parameters=[descriptions.WEBHOOK_ID, IDEMPOTENCY_KEY],
        request=RotateSecretSerializer,
        examples=[descriptions.LEAKED, descriptions.WITH_SECRET],
        responses={200: enveloped(WebhookWithSecretSerializer), **errors(*KEYED, 409, e404=NOT_FOUND)},
    )
    @idempotent
    def rotate_secret(self, request: ApiRequest, webhook_id: str) -> Response:
        rotated = services.rotate_secret(
            tenant_id=request.auth.tenant_id,
            webhook_id=webhook_id,
            actor=Actor.api_key(request.auth.id),
            now=now(),
            **validated(RotateSecretSerializer, request),
        )
        return _with_secret(rotated, status=200)

    @extend_schema(
        operation_id="testWebhook",
        summary="Send a test event",
        description=descriptions.TEST_TEXT,
        parameters=[descriptions.WEBHOOK_ID, IDEMPOTENCY_KEY],
        request=None,
        responses={202: enveloped(DeliverySerializer), **errors(*KEYED, 409, e404=NOT_FOUND, e422=INACTIVE)},
    )
    @idempotent
    def send_test(self, request: ApiRequest, webhook_id: str) -> Response:
        delivery = services.send_test(
            tenant_id=request.auth.tenant_id,
            webhook_id=webhook_id,
            actor=Actor.api_key(request.auth.id),
            now=now(),
        )
        return ok(DeliverySerializer(delivery).data, status=202)

    @extend_schema(
        operation_id="recoverWebhook",
        summary="Send everything again that has failed since a time",
        description=descriptions.RECOVER_TEXT,
        parameters=[descriptions.WEBHOOK_ID, IDEMPOTENCY_KEY],
        request=RecoverSerializer,
        examples=[descriptions.RECOVERY, descriptions.RECOVERED],
        responses={202: enveloped(RecoveredSerializer), **errors(*KEYED, 409, e404=NOT_FOUND, e422=INACTIVE)},
    )
    @idempotent
    def recover(self, request: ApiRequest, webhook_id: str) -> Response:
        since = validated(RecoverSerializer, request)["since"]
        again = services.redeliver_failed(
            tenant_id=request.auth.tenant_id,
            webhook_id=webhook_id,
            since=since,
            actor=Actor.api_key(request.auth.id),
            now=now(),
        )
        done = {"webhook_id": webhook_id, "since": since, "redelivered": len(again)}
        return ok(RecoveredSerializer(done).data, status=202)


class DeliveryViewSet(ApiViewSet):
    """The deliveries of one webhook."""

    schema_tag = "Webhooks"
    required_scopes: ClassVar = {"list": Scope.WEBHOOKS_READ, "redeliver": Scope.WEBHOOKS_WRITE}

    @extend_schema(
        operation_id="listWebhookDeliveries",
        summary="A webhook's delivery history, newest first",
        parameters=[
            descriptions.WEBHOOK_ID,
            descriptions.EVENT_FILTER,
            descriptions.STATUS_FILTER,
            BEFORE,
            LIMIT,
        ],
        examples=[descriptions.HISTORY],
        responses={200: paged(DeliverySerializer, tells_next=True), **errors(*KEYED, e404=NOT_FOUND)},
    )
    def list(self, request: ApiRequest, webhook_id: str) -> Response:
        params = request.query_params
        webhook = Webhook.objects.for_tenant(request.auth.tenant_id).find(webhook_id)
        deliveries = (
            Delivery.objects.to_webhook(webhook)
            .of_event(read_choice(params, "event", DELIVERABLE_EVENTS))
            .with_status(read_choice(params, "status", DeliveryStatus.values))
            .with_history()
        )
        found = keyset_page(
            deliveries, cursor=read_cursor(params), limit=read_limit(params), field="created_at"
        )
        rows = DeliverySerializer(found.rows, many=True).data
        return page(rows, next_cursor=found.next_cursor, has_next_page=found.has_next)

    @extend_schema(
        operation_id="redeliverWebhookDelivery",
        summary="Send a past delivery's event again",
        description=descriptions.REDELIVER_TEXT,
        parameters=[descriptions.WEBHOOK_ID, descriptions.DELIVERY_ID, IDEMPOTENCY_KEY],
        request=None,
        responses={
            202: enveloped(DeliverySerializer),
            **errors(*KEYED, 409, e404="Delivery not found", e422="Delivery is still under way"),
        },
    )
    @idempotent
    def redeliver(self, request: ApiRequest, webhook_id: str, delivery_id: str) -> Response:
        delivery = services.redeliver(
            tenant_id=request.auth.tenant_id,
            webhook_id=webhook_id,
            delivery_id=delivery_id,
            actor=Actor.api_key(request.auth.id),
            now=now(),
        )
        return ok(DeliverySerializer(delivery).data, status=202)


def _with_secret(made: NewSecret, *, status: int) -> Response:
    shown = WebhookWithSecretSerializer(made.webhook, context={"secret": made.secret})
    return ok(shown.data, status=status)
