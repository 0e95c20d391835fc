"""Errors of webhooks."""

from compliance.core.errors import Conflict, Invalid, InvalidState, NotFound


class WebhookNotFound(NotFound):
    message = "Webhook not found"


class DeliveryNotFound(NotFound):
    message = "Delivery not found"


class InvalidUrl(Invalid):
    message = "url: not a URL that webhooks can be sent to"


class TooManyWebhooks(Conflict):
    message = "The tenant has as many webhooks as it can have"


class WebhookInactive(InvalidState):
    message = "Webhook is not active"


class DeliveryUnderWay(InvalidState):
    message = "Delivery is still under way"
