"""Begin a renewal of a blueprint's agents, and work on it.

A renewal commits its set of agents first. Portions of them are brought up to date; then their certificates
follow, one by one. A row remembers which certificate is to be replaced, so that a process that goes on after
another was killed sees what was done.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from agents import services as agents
from agents.blueprints.inheritance import CERTIFIED, brought_up, differing
from agents.blueprints.services import blueprint_entry
from agents.errors import AgentNotFound
from agents.models import (
    MOST_UNRENEWED,
    Agent,
    AgentStatus,
    Blueprint,
    BlueprintRenewal,
    RenewalOutcome,
    RenewedAgent,
)
from agents.querysets import AgentQuerySet, BlueprintRenewalQuerySet
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from certificates.issuing import issuance
from certificates.models import Certificate
from compliance.core import environments
from compliance.core.errors import LimitReached, ServiceError, Unavailable
from compliance.stores.portions import JobPhase, Jobs


def agents_of(blueprint: Blueprint, now: datetime) -> AgentQuerySet:
    """Return a blueprint's agents but retired ones; `is_behind`: its certificate is wider."""
    own = Agent.objects.for_tenant(blueprint.tenant_id).of_blueprint(blueprint.id)
    wider = Certificate.objects.for_tenant(blueprint.tenant_id).active(now).wider_than_profile()
    is_behind = Exists(wider.filter(agent_id=OuterRef("pk")))
    return own.exclude(status=AgentStatus.RETIRED).annotate(is_behind=is_behind)


def to_renew(blueprint: Blueprint, now: datetime) -> AgentQuerySet:
    """Return those of `agents_of` that differ from it or are behind, as after a renewal that failed."""
    differ = Q(id__in=differing(blueprint).values("id"))
    return agents_of(blueprint, now).filter(differ | Q(is_behind=True))


def differs_in(agent: Any, blueprint: Blueprint) -> list[str]:
    """Return the fields that a renewal would change in one of `agents_of`, or in its certificate."""
    behind = ["permitted_actions"] if agent.is_behind else []
    return list(dict.fromkeys([*brought_up(agent, blueprint), *behind]))


def begin(
    *, tenant_id: UUID, blueprint_id: Any, agent_ids: Sequence[UUID] | None, actor: Actor, now: datetime
) -> BlueprintRenewal:
    """Commit a renewal of these agents, or of all that differ; a task works on it.

    Raises: BlueprintNotFound, and AgentNotFound if one is not the blueprint's.
    """
    with environments.atomic():
        blueprint = Blueprint.objects.for_tenant(tenant_id).find(blueprint_id)
        if agent_ids is None:
            picked = to_renew(blueprint, now)
        else:
            own = Agent.objects.for_tenant(tenant_id).of_blueprint(blueprint.id)
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


def with_counts(renewals: BlueprintRenewalQuerySet) -> BlueprintRenewalQuerySet:
    """Add how many agents have each outcome, by its name."""
    counts = {one: Count("agents", filter=Q(agents__outcome=one)) for one in RenewalOutcome.values}
    found: BlueprintRenewalQuerySet = renewals.annotate(**counts)
    return found


def counts_of(renewal: BlueprintRenewal) -> dict[str, int]:
    """Return how many agents have each outcome."""
    row = with_counts(BlueprintRenewal.objects.filter(id=renewal.id)).get()
    return {name: getattr(row, name) for name in RenewalOutcome.values}


def unrenewed(renewal: BlueprintRenewal) -> QuerySet[RenewedAgent]:
    """Return the first of the agents that were skipped, or at which the renewal failed."""
    return renewal.rows.exclude(error="").order_by("id")[:MOST_UNRENEWED]


def _due(renewal: BlueprintRenewal, now: datetime) -> QuerySet[RenewedAgent]:
    return renewal.rows.filter(outcome=RenewalOutcome.PENDING)


def _update(renewal: BlueprintRenewal, rows: list[RenewedAgent], now: datetime) -> None:
    """Bring the agents of locked rows up to date."""
    # A change meanwhile would make an agent's own what it inherits.
    blueprint = Blueprint.objects.for_tenant(renewal.tenant_id).locked().find(renewal.blueprint_id)
    for row in rows:
        _bring_up(renewal, blueprint, row, now)
        row.save(update_fields=["outcome", "replaced_id", "error"])
    BlueprintRenewal.objects.filter(id=renewal.id).update(worked_at=now)


def _bring_up(renewal: BlueprintRenewal, blueprint: Blueprint, row: RenewedAgent, now: datetime) -> None:
    agent = Agent.objects.for_tenant(renewal.tenant_id).locked().find(row.agent_id)
    if agent.is_stopped:
        row.outcome, row.error = RenewalOutcome.SKIPPED, f"Agent is {agent.status}"
        return
    changes = brought_up(agent, blueprint)
    own = Certificate.objects.for_tenant(renewal.tenant_id).of_agent(agent.id)
    is_behind = own.active(now).wider_than_profile().exists()
    if not changes and not is_behind:
        row.outcome = RenewalOutcome.UNCHANGED
        return
    agents.update(
        tenant_id=renewal.tenant_id,
        agent_id=agent.id,
        changes=changes,
        reason=f"as blueprint {renewal.blueprint.name}",
        actor=renewal.actor,
        now=now,
    )
    certificate = own.active(now).first()
    if certificate is not None and (is_behind or not changes.keys().isdisjoint(CERTIFIED)):
        row.replaced_id = certificate.id
    else:
        row.outcome = RenewalOutcome.UPDATED


def _renew(renewal: BlueprintRenewal, rows: list[RenewedAgent], now: datetime) -> int:
    """Renew the certificate of an agent that is up to date, unless that was done; 0: it has to wait."""
    (row,), outcome, error = rows, RenewalOutcome.RENEWED, ""
    asked: dict[str, Any] = {"tenant_id": renewal.tenant_id, "certificate_id": row.replaced_id}
    try:
        if not _is_replaced(row):
            issuance.renew(**asked, actor=renewal.actor, now=now)
    except LimitReached:
        return 0
    except Unavailable:
        raise
    except ServiceError as refused:
        if not _is_replaced(row):
            outcome, error = RenewalOutcome.FAILED, refused.message[:255]
    BlueprintRenewal.objects.filter(id=renewal.id).update(worked_at=now)
    return _due(renewal, now).filter(id=row.id).update(outcome=outcome, error=error)


def _is_replaced(row: RenewedAgent) -> bool:
    own = Certificate.objects.for_tenant(row.tenant_id).of_agent(row.agent_id)
    newest = own.order_by("-issued_at", "-id").values_list("id", flat=True).first()
    return newest != row.replaced_id


def _give_up(renewal: BlueprintRenewal, row_id: Any, now: datetime) -> int:
    error = "The service failed at it; see its log"
    return _due(renewal, now).filter(id=row_id).update(outcome=RenewalOutcome.FAILED, error=error)


def _finish(renewal: BlueprintRenewal, now: datetime) -> None:
    """Say that a renewal is done, once."""
    with environments.atomic():
        running = BlueprintRenewal.objects.filter(id=renewal.id, ended_at=None)
        if running.update(ended_at=max(now, renewal.started_at)):
            _record(renewal, AuditAction.BLUEPRINT_RENEWAL_DONE, now, **counts_of(renewal))


def _record(renewal: BlueprintRenewal, action: AuditAction, now: datetime, **metadata: Any) -> None:
    told = {"renewal_id": str(renewal.id), **metadata}
    auditlog.record_all([blueprint_entry(renewal.blueprint, action, renewal.actor, now, **told)])


PHASES: Final = (
    JobPhase(lambda renewal, now: _due(renewal, now).filter(replaced_id=None), _update, 10, _give_up),
    JobPhase(_due, _renew, 10, _give_up, alone=True),
)
"""First profiles are brought up to date, then certificates follow."""
RENEWALS: Final = Jobs(BlueprintRenewal, "certificates.renew_of_blueprint", 0, lambda _: PHASES, _finish)
