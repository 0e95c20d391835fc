"""Simulations that people ask for in the console: requested, worked on step by step, picked up if lost."""

import logging
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.errors import Conflict, Invalid
from compliance.core.tasks import enqueue, enqueue_on_commit
from compliance.stores.sweeps import each
from compliance.tenancy.models import Tenant
from events.models import Simulation, SimulationStatus
from events.risk.evaluation import replay
from events.risk.evaluation.findings import findings
from events.risk.evaluation.policy import candidate_of, live_policy
from events.risk.evaluation.replay import STEP_EVENTS, Order, Replay
from events.risk.evaluation.stored import EVER
from events.risk.scoring.model import MODEL_VERSION

log = logging.getLogger(__name__)

SIMULATE = "events.simulate"
MAX_ATTEMPTS = 5
RETRY_DELAYS = (1, 3, 9, 27)  # seconds


class AlreadySimulating(Conflict):
    message = "A simulation of this tenant's events is under way"


def request_simulation(
    *,
    tenant_id: UUID,
    changes: dict[str, Any],
    since: datetime | None = None,
    until: datetime | None = None,
    actor: Actor,
    now: datetime,
) -> Simulation:
    """Create a simulation of the candidate that `changes` describe, which a task works on; audits it.

    Raises Invalid, AlreadySimulating.
    """
    order = order_of(tenant_id=tenant_id, changes=changes, since=since, until=until, now=now)
    with environments.atomic():
        Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)
        refuse_second(tenant_id=tenant_id)
        made = Simulation.objects.create(
            tenant_id=tenant_id,
            requested_by=actor.id,
            policies=msgspec.to_builtins(order),
            created_at=now,
        )
        auditlog.record(
            tenant_id=tenant_id,
            action=AuditAction.SIMULATION_REQUESTED,
            affected_id=made.id,
            description="Simulation of a risk policy requested",
            metadata={name: made.policies[name] for name in ("candidate", "since", "until")},
            actor=actor,
            now=now,
        )
        enqueue_on_commit(SIMULATE, simulation_id=str(made.id))
    return made


def refuse_second(*, tenant_id: UUID) -> None:
    """Raise AlreadySimulating while another simulation of the tenant is under way."""
    if Simulation.objects.unfinished().filter(tenant_id=tenant_id).exists():
        raise AlreadySimulating()


def order_of(
    *,
    tenant_id: UUID,
    changes: bytes | dict[str, Any],
    since: datetime | None,
    until: datetime | None,
    now: datetime,
) -> Order:
    """Return the order of a replay from the live policy to the candidate. Raises Invalid.

    Without `until` it ends at the present, less the moments in which events are still being stored. No event
    is older than `EVER`, from which a longer period begins.
    """
    live = live_policy()
    candidate = candidate_of(changes, live)
    end = min(until or now, now - replay.SETTLED)
    since = max(since, EVER) if since else None
    if since is not None and since >= end:
        raise Invalid("The period is empty: it must begin in the past and before it ends")
    return Order(tenant_id=tenant_id, live=live, candidate=candidate, since=since, until=end)


def step(*, simulation_id: Any, now: datetime) -> bool:
    """Do the next step of a simulation and enqueue the one after it; return whether there was one to do.

    Safe to run twice: the step is claimed first, and only the latest claim may store what it did. One that
    fails is tried again after `RETRY_DELAYS`, and fails the simulation in the end.
    """
    simulation = Simulation.objects.claim(simulation_id, now)
    if simulation is None:
        return False
    try:
        changes, is_done = _worked(simulation, now)
    # Whatever is wrong with it, the tenant's next simulation must not wait for the lease.
    except Exception as error:  # noqa: BLE001
        log.error("step of simulation %s failed: %s", simulation.id, type(error).__name__)
        _fail(simulation, now)
        return True
    claimed = Simulation.objects.filter(id=simulation.id, claims=simulation.claims)
    if claimed.unfinished().update(**changes) and not is_done:
        enqueue(SIMULATE, simulation_id=str(simulation.id))
    return True


def _worked(simulation: Simulation, now: datetime) -> tuple[dict[str, Any], bool]:
    """Replay as many events as a step holds; return the columns to store, and whether it was the last."""
    under_way = _resumed(simulation)
    is_done = under_way.run(most=STEP_EVENTS)
    changes: dict[str, Any] = {"events": under_way.events, "attempts": 0, "leased_until": None}
    if is_done:
        found = msgspec.to_builtins(findings(under_way, now=now))
        changes |= {"status": SimulationStatus.READY, "findings": found, "checkpoint": b"", "progress": 1.0}
        changes["completed_at"] = now
    else:
        changes |= {"checkpoint": under_way.packed(), "progress": under_way.progress}
    return changes, is_done


def sweep(*, now: datetime) -> int:
    """Enqueue simulations whose task was lost, fail those out of attempts; return how many were enqueued."""
    due = Simulation.objects.claimable(now).order_by("created_at", "id")
    return each(due.values_list("id", "attempts"), lambda row: _pick_up(*row, now))


def _resumed(simulation: Simulation) -> Replay:
    """Return the replay where the last step left it; from the start, if another version of the model did."""
    order = msgspec.convert(simulation.policies, Order)
    order = msgspec.structs.replace(order, model_version=MODEL_VERSION)
    if not simulation.checkpoint:
        return Replay(order)
    try:
        return replay.resumed(bytes(simulation.checkpoint), order)
    except Invalid as error:
        log.warning("simulation %s begins again: %s", simulation.id, error.message)
        return Replay(order)


def _fail(simulation: Simulation, now: datetime) -> None:
    """Try the claimed step again a little later, or give the simulation up."""
    Simulation.objects.filter(id=simulation.id, claims=simulation.claims).update(leased_until=None)
    if simulation.attempts >= MAX_ATTEMPTS:
        _give_up(simulation.id, simulation.attempts, now)
    else:
        delay = RETRY_DELAYS[simulation.attempts - 1]
        enqueue(SIMULATE, delay_seconds=delay, simulation_id=str(simulation.id))


def _pick_up(simulation_id: UUID, attempts: int, now: datetime) -> bool:
    if attempts < MAX_ATTEMPTS:
        enqueue(SIMULATE, simulation_id=str(simulation_id))
        return True
    _give_up(simulation_id, attempts, now)
    return False


def _give_up(simulation_id: UUID, attempts: int, now: datetime) -> None:
    over = {"status": SimulationStatus.FAILED, "completed_at": now, "checkpoint": b"", "leased_until": None}
    stuck = Simulation.objects.claimable(now).filter(id=simulation_id, attempts__gte=MAX_ATTEMPTS)
    if stuck.update(**over):
        log.error("simulation %s failed after %d attempts", simulation_id, attempts)
