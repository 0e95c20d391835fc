"""What an audit entry may say: its actions and its kinds of actor. Producers import these."""

from dataclasses import dataclass
from uuid import UUID

from django.db import models

SERVICE_TENANT_ID = UUID(int=0)
"""The tenant of entries that concern no tenant (CA, CRL, token keys): operators see them, tenants don't."""


class AuditAction(models.TextChoices):
    """The `event_type` of an entry."""

    TENANT_CREATED = "tenant.created"
    API_KEY_CREATED = "api_key.created"
    API_KEY_ROLLED = "api_key.rolled"
    API_KEY_REVOKED = "api_key.revoked"
    MEMBERSHIP_CHANGED = "membership.changed"
    AGENT_CREATED = "agent.created"
    AGENT_UPDATED = "agent.updated"
    AGENT_ACTIVATED = "agent.activated"
    AGENT_SUSPENDED = "agent.suspended"
    AGENT_REINSTATED = "agent.reinstated"
    AGENT_RETIRED = "agent.retired"
    AGENT_REVIEW_TRIGGERED = "agent.review_triggered"
    AGENT_HIGH_RISK = "agent.high_risk"
    CERTIFICATE_ISSUED = "certificate.issued"
    CERTIFICATE_RENEWED = "certificate.renewed"
    CERTIFICATE_HELD = "certificate.held"
    CERTIFICATE_RELEASED = "certificate.released"
    CERTIFICATE_REVOKED = "certificate.revoked"
    CERTIFICATE_EXPIRED = "certificate.expired"
    CA_CREATED = "ca.created"
    CA_ROTATED = "ca.rotated"
    OCSP_RESPONDER_CREATED = "ocsp_responder.created"
    KEY_DESTROYED = "key.destroyed"
    CRL_PUBLISHED = "crl.published"
    EVENT_HIGH_RISK = "event.high_risk"
    EVENT_REVIEWED = "event.reviewed"
    EVENTS_DROPPED = "events.dropped"
    MESSAGE_SIGNED = "message.signed"
    DELEGATION_ISSUED = "delegation.issued"
    TOKEN_KEY_CREATED = "token_key.created"
    TOKEN_KEY_RETIRED = "token_key.retired"
    WEBHOOK_CREATED = "webhook.created"
    WEBHOOK_UPDATED = "webhook.updated"
    WEBHOOK_DISABLED = "webhook.disabled"
    WEBHOOK_DELETED = "webhook.deleted"
    WEBHOOK_SECRET_ROTATED = "webhook.secret_rotated"
    WEBHOOK_REDELIVERED = "webhook.redelivered"
    WEBHOOK_TESTED = "webhook.tested"
    REPORT_REQUESTED = "report.requested"
    REPORT_GENERATED = "report.generated"
    REPORT_FAILED = "report.failed"


def audit_actions() -> list[tuple[str, str]]:
    """Every action with its label; asked for by name, so that a new action needs no migration."""
    return list(AuditAction.choices)


class ActorType(models.TextChoices):
    """Who acted: a person or their API key, an agent, or the service by itself."""

    USER = "user"
    AGENT = "agent"
    SYSTEM = "system"


@dataclass(frozen=True)
class Actor:
    """Who acted; `id` is an API key's or agent's UUID, a console user's name or a command's name."""

    type: ActorType
    id: str

    @classmethod
    def api_key(cls, key_id: object) -> "Actor":
        return cls(ActorType.USER, f"api_key:{key_id}")

    @classmethod
    def console_user(cls, username: str) -> "Actor":
        return cls(ActorType.USER, f"console:{username}")

    @classmethod
    def agent(cls, agent_id: object) -> "Actor":
        return cls(ActorType.AGENT, str(agent_id))

    @classmethod
    def system(cls, what: str) -> "Actor":
        return cls(ActorType.SYSTEM, what)
