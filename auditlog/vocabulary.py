"""Actions and actors of audit entries; the rooms that record import them."""

from dataclasses import dataclass
from uuid import UUID

from django.db import models

SERVICE_TENANT_ID = UUID(int=0)
"""Tenant of the entries about the service itself (CA, CRL, token keys), which only operators see."""


class AuditAction(models.TextChoices):
    TENANT_CREATED = "tenant.created"
    TENANT_ENFORCEMENT_CHANGED = "tenant.enforcement_changed"
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
    SCOPE_MISMATCH = "agent.scope_mismatch"
    AGENT_ENFORCEMENT_CHANGED = "agent.enforcement_changed"
    AGENT_WOULD_HAVE_STOPPED = "agent.would_have_stopped"
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
    SIMULATION_REQUESTED = "simulation.requested"
    REPORT_REQUESTED = "report.requested"
    REPORT_GENERATED = "report.generated"
    REPORT_FAILED = "report.failed"


def audit_actions() -> list[tuple[str, str]]:
    """Return every action with its label; as a function, so that a new action needs no migration."""
    return list(AuditAction.choices)


class ActorType(models.TextChoices):
    USER = "user"
    AGENT = "agent"
    SYSTEM = "system"


@dataclass(frozen=True)
class Actor:
    """Who acted; `id` names an API key, a console user, an agent, or a part of the service."""

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
