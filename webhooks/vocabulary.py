"""The events a webhook can subscribe to. Producers import these."""

from typing import Final

from django.db import models


class EventName(models.TextChoices):
    """The `event` of an envelope (interface specification, Events)."""

    CERTIFICATE_ISSUED = "certificate.issued"
    CERTIFICATE_REVOKED = "certificate.revoked"
    CERTIFICATE_EXPIRED = "certificate.expired"
    AGENT_HIGH_RISK = "agent.high_risk"
    AGENT_CREATED = "agent.created"
    AGENT_SUSPENDED = "agent.suspended"
    AGENT_HALTED = "agent.halted"
    RISK_ALERT = "risk.alert"


# Sent by `POST /v1/webhooks/{id}/test` alone; no receiver can take it for something that happened.
TEST_EVENT: Final = "webhook.test"
# Stands in a webhook's history where the service switched it off; never sent by itself.
DISABLED_EVENT: Final = "webhook.disabled"
DELIVERABLE_EVENTS: Final = (*EventName.values, TEST_EVENT, DISABLED_EVENT)
