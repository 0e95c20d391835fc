"""Simulations that people ask for in the console: requested, worked on step by step, picked up if lost."""

import logging
from collections import Counter, defaultdict
from datetime import datetime
from operator import itemgetter
from typing import Any
from uuid import UUID

import msgspec

from agents.models import Agent
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.errors import Conflict, Invalid
from compliance.core.identifiers import moment_of
from compliance.core.tasks import enqueue, enqueue_on_commit
from events.models import BehaviorEvent, EventReview, ReviewVerdict, Simulation, SimulationStatus
from events.risk.evaluation import stored
from events.risk.evaluation.policy import candidate_of, live_policy
from events.risk.evaluation.replay import SETTLED, Order, Replay, Stop, resumed
from events.risk.evaluation.stored import EVER, Lives
from events.risk.scoring.model import MODEL_VERSION
from tenancy.models import Tenant

log = logging.getLogger(__name__)

SIMULATE = "events.simulate"
STEP_EVENTS = 20_000
MAX_ATTEMPTS = 5
MOST_ROWS = 500  # agents listed; the counts are of all
MISSED, NEW, EARLIER, LATER, NEITHER, SAME = "missed", "new", "earlier", "later", "neither", "same"
FATES = (MISSED, NEW, EARLIER, LATER, NEITHER, SAME)
"""What becomes of an agent under the candidate, beside the live policy; the most telling first."""
UNREVIEWED = "unreviewed"
VERDICTS = (*ReviewVerdict.values, UNREVIEWED)

Life = tuple[UUID, int]
"""An agent, and the number of its reinstatements before."""


class Fate(msgspec.Struct, frozen=True):
    """An agent's life under both policies. `confirmed`: its events that officers confirmed as an attack.

    `verdict`: confirmed if one of its events was, dismissed if all its strikes were. `earlier_seconds`: by
    how much the candidate stops it before the live policy.
    """

    agent_id: UUID
    agent: str
    fate: str
    verdict: str
    confirmed: int
    first_confirmed_at: datetime | None
    stopped_at: datetime | None
    live: Stop | None
    candidate: Stop | None
    earlier_seconds: float | None


class NotReproduced(msgspec.Struct, frozen=True):
    agent_id: UUID
    at: datetime
    reason: str


class ReplayFindings(msgspec.Struct, frozen=True):
    """The result of a simulation. `counts`: agents' lives by fate and verdict.

    `unrecorded`: stops of the live policy in the replay that the service did not make (of an agent that it
    only observed, or by other settings). `equal_scores` of `comparable_scores`: scores stored by this version
    of the model that were met again, where events were scored anew.
    """

    order: Order
    events: int
    recorded: int
    reproduced: int
    not_reproduced: list[NotReproduced]
    unrecorded: int
    equal_scores: int
    comparable_scores: int
    live_stops: int
    candidate_stops: int
    counts: dict[str, dict[str, int]]
    agents: list[Fate]


class AlreadySimulating(Conflict):
    message = "A simulation of this tenant's events is under way"


class Verdicts:
    """The verdicts that count on the tenant's events, by event and by agent's life."""

    def __init__(self, order: Order, lives: Lives, reviews: list[EventReview]) -> None:
        self._of_event = {review.event_id: ReviewVerdict(review.verdict) for review in reviews}
        agents = {review.event_id: review.agent_id for review in reviews}
        self.confirmed: defaultdict[Life, list[datetime]] = defaultdict(list)
        for event_id, verdict in sorted(self._of_event.items()):
            at, agent_id = moment_of(event_id), agents[event_id]
            if verdict == ReviewVerdict.CONFIRMED and at < order.until and at >= (order.since or at):
                self.confirmed[agent_id, lives.at(agent_id, at)].append(at)

    def of(self, life: Life, *stops: Stop | None) -> str:
        if life in self.confirmed:
            return ReviewVerdict.CONFIRMED
        said = [self._of_event.get(strike.event_id) for stop in stops if stop for strike in stop.strikes]
        return ReviewVerdict.DISMISSED if said and None not in said else UNREVIEWED


def findings(replay: Replay, *, now: datetime) -> ReplayFindings:
    """Return what a replay that is done has found; `now`: until when reviews count."""
    order, reached = replay.order, replay.reached
    live, candidate = ({(stop.agent_id, stop.life): stop for stop in stops} for stops in replay.stops())
    verdicts = Verdicts(order, replay.lives, stored.reviews(order.tenant_id, before=now))
    missing = _not_reproduced(replay, live)
    made = {(stop.agent_id, replay.lives.at(stop.agent_id, stop.at)): stop.at for stop in replay.recorded}
    fates = _fates(live, candidate, made, verdicts)
    counted = Counter((one.fate, one.verdict) for one in fates)
    return ReplayFindings(
        order=order,
        events=reached.events,
        recorded=len(replay.recorded),
        reproduced=len(replay.recorded) - len(missing),
        not_reproduced=missing,
        unrecorded=len(live.keys() - made.keys()),
        equal_scores=reached.equal,
        comparable_scores=reached.comparable,
        live_stops=len(live),
        candidate_stops=len(candidate),
        counts={fate: {verdict: counted[fate, verdict] for verdict in VERDICTS} for fate in FATES},
        agents=fates[:MOST_ROWS],
    )


def _not_reproduced(replay: Replay, live: dict[Life, Stop]) -> list[NotReproduced]:
    missing = [one for one in replay.recorded if one.event_id not in set(replay.reached.reproduced)]
    rows = BehaviorEvent.objects.filter(id__in={one.event_id for one in missing})
    kept = set(rows.values_list("id", flat=True))
    found = []
    for one in missing:
        stop = live.get((one.agent_id, replay.lives.at(one.agent_id, one.at)))
        if stop is not None:
            reason = f"the replay stops it by event {stop.event_id} of {stop.at:%Y-%m-%d %H:%M:%S} UTC"
        elif one.event_id not in kept:
            reason = "its events are past their retention"
        else:
            reason = f"its stored events do not reach the present threshold; recorded then: {one.words}"
        found.append(NotReproduced(one.agent_id, one.at, reason))
    return found


def _fates(
    live: dict[Life, Stop], candidate: dict[Life, Stop], made: dict[Life, datetime], verdicts: Verdicts
) -> list[Fate]:
    met = live.keys() | candidate.keys() | verdicts.confirmed.keys()
    names = dict(Agent.objects.filter(id__in={agent_id for agent_id, _ in met}).values_list("id", "name"))
    fates = []
    for life in met:
        old, new, confirmed = live.get(life), candidate.get(life), verdicts.confirmed.get(life, [])
        verdict, earlier = verdicts.of(life, old, new), None
        fate = NEW if new else MISSED if old else NEITHER
        if old and new:
            earlier = (old.at - new.at).total_seconds()
            fate = EARLIER if earlier > 0 else LATER if earlier < 0 else SAME
        found = Fate(
            agent_id=life[0],
            agent=names.get(life[0], ""),
            fate=fate,
            verdict=verdict,
            confirmed=len(confirmed),
            first_confirmed_at=confirmed[0] if confirmed else None,
            stopped_at=made.get(life),
            live=old,
            candidate=new,
            earlier_seconds=earlier,
        )
        first = min([*confirmed[:1], *(stop.at for stop in (old, new) if stop)])
        fates.append(((VERDICTS.index(verdict), FATES.index(fate), first, life[0]), found))
    return [found for _, found in sorted(fates, key=itemgetter(0))]


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
    changes: dict[str, Any],
    since: datetime | None,
    until: datetime | None,
    now: datetime,
) -> Order:
    """Return the order of a replay from the live policy to the candidate. Raises Invalid.

    Without `until` it ends at the present, less the moments in which events are still being stored. No event
    is older than `EVER`, from which a longer period begins.
    """
    end = min(until or now, now - SETTLED)
    since = max(since, EVER) if since else None
    if since is not None and since >= end:
        raise Invalid("The period is empty: it must begin in the past and before it ends")
    candidate = candidate_of(changes)
    return Order(tenant_id=tenant_id, live=live_policy(), candidate=candidate, since=since, until=end)


def step(*, simulation_id: Any, now: datetime) -> bool:
    """Do the next step of a simulation and enqueue the one after it; return whether there was one to do.

    Safe to run twice: the step is claimed first, and only the latest claim may store what it did. A step that
    fails is tried again by `sweep()` once its lease is over.
    """
    simulation = Simulation.objects.claim(simulation_id, now)
    if simulation is None:
        return False
    # Another version of the model begins again
    order = msgspec.structs.replace(msgspec.convert(simulation.policies, Order), model_version=MODEL_VERSION)
    under_way = resumed(order, bytes(simulation.checkpoint))
    is_done = under_way.run(most=STEP_EVENTS)
    changes: dict[str, Any] = {"events": under_way.reached.events, "attempts": 0, "leased_until": None}
    if is_done:
        found = msgspec.to_builtins(findings(under_way, now=now))
        changes |= {"status": SimulationStatus.READY, "findings": found, "checkpoint": b"", "progress": 1.0}
        changes["completed_at"] = now
    else:
        changes |= {"checkpoint": under_way.packed(), "progress": under_way.progress}
    claimed = Simulation.objects.filter(id=simulation.id, claims=simulation.claims)
    if claimed.unfinished().update(**changes) and not is_done:
        enqueue(SIMULATE, simulation_id=str(simulation.id))
    return True


def sweep(*, now: datetime) -> int:
    """Enqueue simulations whose step was lost, fail those out of attempts; return how many were enqueued."""
    over = {"status": SimulationStatus.FAILED, "completed_at": now, "checkpoint": b"", "leased_until": None}
    due = Simulation.objects.claimable(now).order_by("created_at", "id")
    if failed := due.filter(attempts__gte=MAX_ATTEMPTS).update(**over):
        log.error("%d simulations failed after %d attempts", failed, MAX_ATTEMPTS)
    ids = [str(simulation_id) for simulation_id in due.values_list("id", flat=True)]
    for simulation_id in ids:
        enqueue(SIMULATE, simulation_id=simulation_id)
    return len(ids)
