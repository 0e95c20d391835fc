"""Begin a renewal of a blueprint's agents, and work on it.

A renewal commits its set of agents first; then they follow one by one. An agent, its certificate and its row
of the renewal change together, so that a process that goes on after another was killed sees what was done.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet

from agents import services as agents
from agents.blueprints.inheritance import CERTIFIED, brought_up, differing
from agents.blueprints.services import blueprint_entry
from agents.errors import AgentNotFound
from agents.models import Agent, Blueprint, BlueprintRenewal, RenewalOutcome, RenewedAgent
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from certificates.errors import AlreadyRevoked, AlreadySuperseded
from certificates.issuing import issuance
from certificates.models import Certificate
from compliance.core import environments
from compliance.core.errors import LimitReached, ServiceError, Unavailable
from compliance.stores.portions import JobPhase, Jobs


def begin(
    *, tenant_id: UUID, blueprint_id: Any, agent_ids: Sequence[UUID] | None, actor: Actor, now: datetime
) -> BlueprintRenewal:
    """Commit a renewal of these agents, or of all that differ; a task works on it.

    Raises: BlueprintNotFound, and AgentNotFound if one is not the blueprint's.
    """
    with environments.atomic():
        blueprint = Blueprint.objects.for_tenant(tenant_id).find(blueprint_id)
        picked = differing(blueprint)
        if agent_ids is not None:
            own = Agent.objects.for_tenant(tenant_id).filter(blueprint_id=blueprint.id)
            picked = own.filter(id__in=agent_ids)
        ids = list(picked.order_by("id").values_list("id", flat=True))
        if agent_ids is not None and len(ids) != len({*agent_ids}):
            raise AgentNotFound()
        renewal = BlueprintRenewal.objects.create(
            tenant_id=tenant_id,
            blueprint=blueprint,
            matched=len(ids),
            started_by=actor.id,
            started_by_kind=actor.kind,
            started_at=now,
            worked_at=now,
        )
        rows = [RenewedAgent(tenant_id=tenant_id, renewal=renewal, agent_id=one) for one in ids]
        RenewedAgent.objects.bulk_create(rows, batch_size=10_000)
        _record(renewal, AuditAction.BLUEPRINT_RENEWAL_STARTED, now, matched=len(ids))
    return RENEWALS.start(renewal, len(ids), now)


def _due(renewal: BlueprintRenewal, now: datetime) -> QuerySet[RenewedAgent]:
    return renewal.rows.filter(outcome=RenewalOutcome.PENDING)


def _renew(renewal: BlueprintRenewal, rows: list[RenewedAgent], now: datetime) -> int:
    """Bring an agent up to date, with a new certificate where that states what changes; 0: it has to wait."""
    (row,) = rows
    try:
        with environments.atomic():
            agent = Agent.objects.for_tenant(row.tenant_id).locked().find(row.agent_id)
            if agent.is_stopped:
                return _end(renewal, row.id, RenewalOutcome.SKIPPED, now, f"Agent is {agent.status}")
            changes = _changes(renewal, agent)
            certificate = Certificate.objects.for_tenant(row.tenant_id).of_agent(agent.id).active(now).first()
            if certificate is None or changes.keys().isdisjoint(CERTIFIED):
                outcome = RenewalOutcome.UPDATED if changes else RenewalOutcome.UNCHANGED
                _update(renewal, row.id, agent, changes, outcome, now)
                return 1
        issuance.renew(
            tenant_id=row.tenant_id,
            certificate_id=certificate.id,
            adjust=lambda locked: _update(
                renewal, row.id, locked, _changes(renewal, locked), RenewalOutcome.RENEWED, now
            ),
            actor=renewal.actor,
            now=now,
        )
    except (LimitReached, AlreadyRevoked, AlreadySuperseded):
        # Renewed by another meanwhile, too: the next turn sees its certificate.
        return 0
    except Unavailable:
        raise
    except ServiceError as refused:
        _end(renewal, row.id, RenewalOutcome.FAILED, now, refused.message[:255])
    return 1


def _changes(renewal: BlueprintRenewal, agent: Agent) -> dict[str, Any]:
    """Return what brings an agent up to date with its blueprint, which is locked.

    A change of it meanwhile would make an agent's own what it inherits.
    """
    return brought_up(
        agent, Blueprint.objects.for_tenant(agent.tenant_id).locked().find(renewal.blueprint_id)
    )


def _update(
    renewal: BlueprintRenewal,
    row_id: int,
    agent: Agent,
    changes: dict[str, Any],
    outcome: RenewalOutcome,
    now: datetime,
) -> Agent:
    reason = f"as blueprint {renewal.blueprint.name}"
    asked: dict[str, Any] = {"tenant_id": agent.tenant_id, "agent_id": agent.id, "actor": renewal.actor}
    updated, _ = agents.update(changes=changes, reason=reason, now=now, **asked)
    _end(renewal, row_id, outcome, now)
    return updated


def _end(
    renewal: BlueprintRenewal, row_id: int, outcome: RenewalOutcome, now: datetime, error: str = ""
) -> int:
    """Note what became of an agent; return 1, or 0 if another process has noted it."""
    BlueprintRenewal.objects.filter(id=renewal.id).update(worked_at=now)
    return _due(renewal, now).filter(id=row_id).update(outcome=outcome, error=error)


def _give_up(renewal: BlueprintRenewal, row_id: Any, now: datetime) -> int:
    return _end(renewal, row_id, RenewalOutcome.FAILED, now, "The service failed at it; see its log")


def _finish(renewal: BlueprintRenewal, now: datetime) -> None:
    """Say that a renewal is done, once."""
    with environments.atomic():
        running = BlueprintRenewal.objects.filter(id=renewal.id, ended_at=None)
        if running.update(ended_at=max(now, renewal.started_at)):
            _record(renewal, AuditAction.BLUEPRINT_RENEWAL_DONE, now, **renewal.counts)


def _record(renewal: BlueprintRenewal, action: AuditAction, now: datetime, **metadata: Any) -> None:
    told = {"renewal_id": str(renewal.id), **metadata}
    auditlog.record_all([blueprint_entry(renewal.blueprint, action, renewal.actor, now, **told)])


PHASES: Final = (JobPhase(_due, _renew, 10, _give_up, alone=True),)
RENEWALS: Final = Jobs(BlueprintRenewal, "certificates.renew_of_blueprint", 0, lambda _: PHASES, _finish)
