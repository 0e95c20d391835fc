"""What officers do to certificates in the console, and to agents when certificates are touched by it."""

from agents.models import AgentStatus
from auditlog.vocabulary import Actor
from certificates import services
from certificates.models import CertificateStatus
from compliance.clock import now
from compliance.console import ActionCall, ConfirmedAction
from compliance.console.display import visible


def revoke(call: ActionCall) -> str:
    certificate = services.revoke(
        tenant_id=call.row.tenant_id,
        certificate_id=call.row.id,
        reason=call.data["reason"],
        actor=Actor.console_user(call.username),
        now=call.now,
    )
    return f"Certificate {certificate.serial_number} is revoked; the next verification says so."


def retire(call: ActionCall) -> str:
    agent = services.retire_agent(
        tenant_id=call.row.tenant_id,
        agent_id=call.row.id,
        reason=call.data["reason"],
        actor=Actor.console_user(call.username),
        now=call.now,
    )
    return f"{visible(agent)} is retired."


def suspend(call: ActionCall) -> str:
    agent = services.suspend_agent(
        tenant_id=call.row.tenant_id,
        agent_id=call.row.id,
        reason=call.data["reason"],
        actor=Actor.console_user(call.username),
        now=call.now,
    )
    return f"{visible(agent)} is suspended."


def reinstate(call: ActionCall) -> str:
    agent = services.reinstate_agent(
        tenant_id=call.row.tenant_id,
        agent_id=call.row.id,
        reason=call.data["reason"],
        actor=Actor.console_user(call.username),
        now=call.now,
    )
    if agent.status == AgentStatus.ACTIVE:
        return f"{visible(agent)} is active again."
    return f"{visible(agent)} is pending again and can be certified anew."


REVOKE = ConfirmedAction(
    name="revoke",
    label="Revoke certificate",
    icon="block",
    explanation=(
        "The next verification answers revoked, and the revocation list will name the certificate. It can't "
        "be undone: the agent needs a new certificate. A reason that begins with one of RFC 5280's (key "
        "compromise, superseded, privilege withdrawn, …) is put on the list, too."
    ),
    run=revoke,
    is_offered=lambda certificate: (
        certificate.status_at(now()) == CertificateStatus.ACTIVE or certificate.is_on_hold(now())
    ),
    is_destructive=True,
)
SUSPEND = ConfirmedAction(
    name="suspend",
    label="Suspend agent",
    icon="pause_circle",
    explanation=(
        "The agent's events are refused and its certificate is on hold until it is reinstated: verification "
        "answers revoked (certificateHold), and the revocation list names it. Subscribed webhooks hear "
        "agent.suspended and certificate.revoked."
    ),
    run=suspend,
    is_offered=lambda agent: agent.status in (AgentStatus.PENDING, AgentStatus.ACTIVE),
    is_destructive=True,
)
REINSTATE = ConfirmedAction(
    name="reinstate",
    label="Reinstate agent",
    icon="restart_alt",
    explanation=(
        "Closes the review. A certificate on hold is released and the agent is active at once. Where the "
        "certificate was revoked for good or has ended, the agent is pending, and certifying it issues a "
        "certificate with a new serial number. Do this once the cause is fixed."
    ),
    run=reinstate,
    is_offered=lambda agent: agent.status == AgentStatus.SUSPENDED,
)
RETIRE = ConfirmedAction(
    name="retire",
    label="Retire agent",
    icon="archive",
    explanation="Ends the agent for good: its certificate is revoked and it can't be certified again.",
    run=retire,
    is_offered=lambda agent: agent.status != AgentStatus.RETIRED,
    is_destructive=True,
)
