"""The console's actions on certificates, and on agents where they change the certificate too."""

from collections.abc import Callable
from functools import partial
from typing import Any

from agents.models import AgentStatus
from auditlog.actors.requests import user_of
from certificates import services
from certificates.models import CertificateStatus
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.display import visible
from compliance.core.clock import now


def _run(
    service: Callable[..., Any], identifier: str, done: Callable[[Any], str]
) -> Callable[[ActionCall], str]:
    """Call a service with the row's id as `identifier`; `done` returns the message about its result."""

    def run(call: ActionCall) -> str:
        changed = service(
            **{identifier: call.row.id}, reason=call.data["reason"], **user_of(call.request, call.row)
        )
        return done(changed)

    return run


REVOKE = ConfirmedAction(
    name="revoke",
    label="Revoke certificate",
    icon="block",
    explanation=(
        "The next verification answers revoked, and the revocation list will name the certificate. It can't "
        "be undone: the agent needs a new certificate. A reason that begins with one of RFC 5280's (key "
        "compromise, superseded, privilege withdrawn, …) is put on the list, too."
    ),
    run=_run(
        services.revoke,
        "certificate_id",
        lambda row: f"Certificate {row.serial_number} is revoked; the next verification says so.",
    ),
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
        "answers revoked (certificateHold), and the revocation list names it. Subscribed webhooks receive "
        "agent.suspended and certificate.revoked."
    ),
    run=_run(services.suspend_agent, "agent_id", lambda agent: f"{visible(agent)} is suspended."),
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
    run=_run(
        partial(services.reinstate_agent, may_undo_stop=True),
        "agent_id",
        lambda agent: f"{visible(agent)} is {agent.status} again.",
    ),
    is_offered=lambda agent: agent.status == AgentStatus.SUSPENDED,
)
RETIRE = ConfirmedAction(
    name="retire",
    label="Retire agent",
    icon="archive",
    explanation="Ends the agent for good: its certificate is revoked and it can't be certified again.",
    run=_run(services.retire_agent, "agent_id", lambda agent: f"{visible(agent)} is retired."),
    is_offered=lambda agent: agent.status != AgentStatus.RETIRED,
    is_destructive=True,
)
