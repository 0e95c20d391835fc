"""Names of the events sent to webhooks; the rooms that publish import them."""

from typing import Final

from django.db import models


class EventName(models.TextChoices):
    """The `event` of an envelope."""

    CERTIFICATE_ISSUED = "certificate.issued"
    CERTIFICATE_REVOKED = "certificate.revoked"
    CERTIFICATE_EXPIRING = "certificate.expiring"
    CERTIFICATE_EXPIRED = "certificate.expired"
    AGENT_HIGH_RISK = "agent.high_risk"
    AGENT_CREATED = "agent.created"
    AGENT_SUSPENDED = "agent.suspended"
    AGENT_HALTED = "agent.halted"
    RISK_ALERT = "risk.alert"
    AGENT_DORMANT = "agent.dormant"
    AGENT_STRIKE = "agent.strike"
    INCIDENT_OPENED = "incident.opened"
    INCIDENT_DEADLINE = "incident.deadline"
    APPROVAL_REQUESTED = "approval.requested"
    APPROVAL_DECIDED = "approval.decided"
    ACCESS_REVIEW_OPENED = "access_review.opened"
    ACCESS_REVIEW_OVERDUE = "access_review.overdue"


def event_names() -> list[tuple[str, str]]:
    """Return every name with its label; as a function, so that a new name needs no migration."""
    return list(EventName.choices)


# Sent only by `POST /v1/webhooks/{id}/test`, so that no receiver takes a test for an event.
TEST_EVENT: Final = "webhook.test"
# A note in a webhook's history that the service switched it off; not sent.
DISABLED_EVENT: Final = "webhook.disabled"
DELIVERABLE_EVENTS: Final = (*EventName.values, TEST_EVENT, DISABLED_EVENT)


def deliverable_events() -> list[tuple[str, str]]:
    """Return every name that a delivery may have, as a choice."""
    return [(name, name) for name in DELIVERABLE_EVENTS]
