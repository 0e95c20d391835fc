"""Actions and actors of audit entries; the rooms that record import them."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db import models

SERVICE_TENANT_ID = UUID(int=0)
"""Tenant of the entries about the service itself (CA, CRL, token and log keys), which only operators see."""
PERSON: Final = "person:"
"""How the id of an actor begins who is a person; the id of `people` follows."""

OWNER: Final = "owner:"
"""How the id of an actor begins who is an agent's owner; the e-mail address follows."""


class AuditAction(models.TextChoices):
    TENANT_CREATED = "tenant.created"
    TENANT_ENFORCEMENT_CHANGED = "tenant.enforcement_changed"
    TENANT_ALARM_BUDGET_CHANGED = "tenant.alarm_budget_changed"
    TENANT_OWNER_REQUIRED_CHANGED = "tenant.owner_required_changed"
    API_KEY_CREATED = "api_key.created"
    API_KEY_ROLLED = "api_key.rolled"
    API_KEY_REVOKED = "api_key.revoked"
    MEMBERSHIP_CHANGED = "membership.changed"
    PERSON_CREATED = "person.created"
    PERSON_UPDATED = "person.updated"
    PERSON_DEACTIVATED = "person.deactivated"
    PERSON_REACTIVATED = "person.reactivated"
    PERSON_RIGHTS_CHANGED = "person.rights_changed"
    PERSON_PASSWORD_CHANGED = "person.password_changed"
    PERSON_LINK_MADE = "person.link_made"
    PERSON_SECOND_FACTOR_ADDED = "person.second_factor_added"
    PERSON_SECOND_FACTOR_REMOVED = "person.second_factor_removed"
    PERSON_RECOVERY_CODES_MADE = "person.recovery_codes_made"
    PERSON_SECURITY_KEY_ADDED = "person.security_key_added"
    PERSON_SECURITY_KEY_REMOVED = "person.security_key_removed"
    PERSON_SECURITY_KEY_REFUSED = "person.security_key_refused"
    PERSON_CONFIRMED = "person.confirmed"
    PERSON_SIGN_ON_LINKED = "person.sign_on_linked"
    PERSON_SIGN_ON_UNLINKED = "person.sign_on_unlinked"
    PERSON_SESSIONS_ENDED = "person.sessions_ended"
    PERSON_SIGNED_IN = "person.signed_in"
    PERSON_SIGNED_OUT = "person.signed_out"
    PERSON_SIGN_IN_FAILED = "person.sign_in_failed"
    PERSON_CHECK_FAILED = "person.check_failed"
    AGENT_CREATED = "agent.created"
    AGENT_UPDATED = "agent.updated"
    AGENT_ACTIVATED = "agent.activated"
    AGENT_SUSPENDED = "agent.suspended"
    AGENT_REINSTATED = "agent.reinstated"
    AGENT_RETIRED = "agent.retired"
    AGENT_REVIEW_TRIGGERED = "agent.review_triggered"
    AGENT_HIGH_RISK = "agent.high_risk"
    AGENT_STRIKE = "agent.strike"
    AGENT_DORMANT = "agent.dormant"
    SCOPE_MISMATCH = "agent.scope_mismatch"
    AGENT_ENFORCEMENT_CHANGED = "agent.enforcement_changed"
    AGENT_KEY_REGISTERED = "agent_key.registered"
    AGENT_KEY_REVOKED = "agent_key.revoked"
    AGENT_WOULD_HAVE_STOPPED = "agent.would_have_stopped"
    BLUEPRINT_CREATED = "blueprint.created"
    BLUEPRINT_UPDATED = "blueprint.updated"
    BLUEPRINT_RENEWAL_STARTED = "blueprint.renewal_started"
    BLUEPRINT_RENEWAL_DONE = "blueprint.renewal_done"
    CERTIFICATE_ISSUED = "certificate.issued"
    CERTIFICATE_RENEWED = "certificate.renewed"
    CERTIFICATE_HELD = "certificate.held"
    CERTIFICATE_RELEASED = "certificate.released"
    CERTIFICATE_REVOKED = "certificate.revoked"
    CERTIFICATE_EXPIRING = "certificate.expiring"
    CERTIFICATE_EXPIRED = "certificate.expired"
    CA_CREATED = "ca.created"
    CA_ROTATED = "ca.rotated"
    OCSP_RESPONDER_CREATED = "ocsp_responder.created"
    KEY_DESTROYED = "key.destroyed"
    WRAPPING_KEY_CREATED = "wrapping_key.created"
    CRL_PUBLISHED = "crl.published"
    CRL_RESUMED = "crl.resumed"
    EVENT_HIGH_RISK = "event.high_risk"
    EVENT_REVIEWED = "event.reviewed"
    INBOX_ASSIGNED = "inbox.assigned"
    INBOX_SNOOZED = "inbox.snoozed"
    INBOX_COMMENTED = "inbox.commented"
    EVENTS_ARCHIVED = "events.archived"
    EVENTS_DROPPED = "events.dropped"
    EVENTS_RESTORED = "events.restored"
    MESSAGE_SIGNED = "message.signed"
    DELEGATION_ISSUED = "delegation.issued"
    CREDENTIAL_ISSUED = "credential.issued"
    GATEWAY_ROUTE_CREATED = "gateway_route.created"
    GATEWAY_ROUTE_UPDATED = "gateway_route.updated"
    GATEWAY_ROUTE_DELETED = "gateway_route.deleted"
    GATEWAY_SCOPE_VIOLATION = "gateway.scope_violation"
    DECISION_DENIED = "decision.denied"
    DECISION_ASKED = "decision.asked"
    ASK_POLICY_SET = "ask_policy.set"
    ASK_POLICY_REMOVED = "ask_policy.removed"
    STOP_STARTED = "stop.started"
    STOP_UNTOLD = "stop.untold"
    STOP_DONE = "stop.done"
    STOP_RELEASE_STARTED = "stop.release_started"
    STOP_RELEASED = "stop.released"
    ACCESS_REVIEW_OPENED = "access_review.opened"
    ACCESS_REVIEW_SCHEDULED = "access_review.scheduled"
    ACCESS_REVIEW_UPDATED = "access_review.updated"
    ACCESS_REVIEW_DECIDED = "access_review.decided"
    ACCESS_REVIEW_OVERDUE = "access_review.overdue"
    ACCESS_REVIEW_DONE = "access_review.done"
    APPROVAL_REQUESTED = "approval.requested"
    APPROVAL_DECIDED = "approval.decided"
    APPROVAL_EXPIRED = "approval.expired"
    APPROVAL_USED = "approval.used"
    DELEGATION_REVOKED = "delegation.revoked"
    ISSUER_TRUSTED = "issuer.trusted"
    ISSUER_UPDATED = "issuer.updated"
    ISSUER_DISTRUSTED = "issuer.distrusted"
    TOKEN_KEY_CREATED = "token_key.created"
    TOKEN_KEY_RETIRED = "token_key.retired"
    LOG_KEY_CREATED = "log_key.created"
    LOG_KEY_RETIRED = "log_key.retired"
    WEBHOOK_CREATED = "webhook.created"
    WEBHOOK_UPDATED = "webhook.updated"
    WEBHOOK_DISABLED = "webhook.disabled"
    WEBHOOK_DELETED = "webhook.deleted"
    WEBHOOK_SECRET_ROTATED = "webhook.secret_rotated"
    WEBHOOK_REDELIVERED = "webhook.redelivered"
    WEBHOOK_TESTED = "webhook.tested"
    SIGNAL_STREAM_CREATED = "signal_stream.created"
    SIGNAL_STREAM_UPDATED = "signal_stream.updated"
    SIGNAL_STREAM_STATUS_CHANGED = "signal_stream.status_changed"
    SIGNAL_STREAM_VERIFIED = "signal_stream.verification_requested"
    SIGNAL_STREAM_DELETED = "signal_stream.deleted"
    INCIDENT_OPENED = "incident.opened"
    INCIDENT_JOINED = "incident.joined"
    INCIDENT_UPDATED = "incident.updated"
    INCIDENT_MERGED = "incident.merged"
    INCIDENT_NOTED = "incident.noted"
    INCIDENT_ATTACHED = "incident.attached"
    INCIDENT_DEADLINE_NEAR = "incident.deadline_near"
    INCIDENT_DEADLINE_MISSED = "incident.deadline_missed"
    INCIDENT_EXPORTED = "incident.exported"
    NOTIFICATION_DRAFTED = "notification.drafted"
    NOTIFICATION_DOWNLOADED = "notification.downloaded"
    TRACED_NAME_MAPPED = "traced_name.mapped"
    TRACED_NAME_REMOVED = "traced_name.removed"
    SIMULATION_REQUESTED = "simulation.requested"
    AUDIT_ERASED = "audit.erased"
    AUDIT_DROPPED = "audit.dropped"
    AUDIT_EXPORTED = "audit.exported"
    RETENTION_CHANGED = "retention.changed"
    REPORT_REQUESTED = "report.requested"
    REPORT_GENERATED = "report.generated"
    REPORT_FAILED = "report.failed"
    REPORT_DELETED = "report.deleted"
    REPORT_DOWNLOADED = "report.downloaded"
    AGENT_ATTESTED = "agent.attested"
    REPORT_SCHEDULED = "report.scheduled"
    REPORT_SCHEDULE_CHANGED = "report.schedule_changed"
    REPORT_SCHEDULE_ENDED = "report.schedule_ended"


def audit_actions() -> list[tuple[str, str]]:
    """Return every action with its label; as a function, so that a new action needs no migration."""
    return list(AuditAction.choices)


class ActorType(models.TextChoices):
    """The actor types of the interface specification; API keys and people are both `user`."""

    USER = "user"
    AGENT = "agent"
    SYSTEM = "system"


class ActorKind(models.TextChoices):
    """Kinds of actors: a person at the console, a tenant's API key, an agent, or a part of the service."""

    PERSON = "person"
    API_KEY = "api_key"
    AGENT = "agent"
    SYSTEM = "system"


@dataclass(frozen=True)
class Actor:
    """The actor of an act: a person (entries before 0.2: `console:<username>`), API key, agent or part."""

    kind: ActorKind
    id: str

    @property
    def type(self) -> ActorType:
        return _TYPES[self.kind]

    @classmethod
    def api_key(cls, key_id: object) -> "Actor":
        return cls(ActorKind.API_KEY, f"api_key:{key_id}")

    @classmethod
    def person(cls, person_id: UUID) -> "Actor":
        return cls(ActorKind.PERSON, f"{PERSON}{person_id}")

    @classmethod
    def owner(cls, email: str) -> "Actor":
        """An agent's owner, who needs no account: a person known by their e-mail address."""
        return cls(ActorKind.PERSON, f"{OWNER}{email}")

    @classmethod
    def agent(cls, agent_id: object) -> "Actor":
        return cls(ActorKind.AGENT, str(agent_id))

    @classmethod
    def system(cls, what: str) -> "Actor":
        return cls(ActorKind.SYSTEM, what)


_TYPES = {
    ActorKind.PERSON: ActorType.USER,
    ActorKind.API_KEY: ActorType.USER,
    ActorKind.AGENT: ActorType.AGENT,
    ActorKind.SYSTEM: ActorType.SYSTEM,
}


AI_ACT_DAYS: Final = 183
"""Six months, the least of Articles 19 and 26(6) of Regulation (EU) 2024/1689."""
MICA_DAYS: Final = 1827
"""Five years, of Article 68(9) of Regulation (EU) 2023/1114."""
RETENTIONS: Final = ("EVENT_RETENTION_DAYS", "AUDIT_RETENTION_DAYS")
"""The settings that these terms bound."""
