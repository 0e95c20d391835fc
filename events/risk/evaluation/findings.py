"""What a replay found: the check against recorded revocations, and each agent's fate beside the verdicts."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

import msgspec

from agents.models import Agent
from compliance.core.identifiers import moment_of
from events.models import EventReview, ReviewVerdict
from events.risk.evaluation import stored
from events.risk.evaluation.replay import Order, Replay, Stop
from events.risk.evaluation.stored import Lives, RecordedStop

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

    def of(self, life: Life, stops: Iterable[Stop | None]) -> str:
        if life in self.confirmed:
            return ReviewVerdict.CONFIRMED
        said = [self._of_event.get(strike.event_id) for stop in stops if stop for strike in stop.strikes]
        return ReviewVerdict.DISMISSED if said and None not in said else UNREVIEWED


def findings(replay: Replay, *, now: datetime) -> ReplayFindings:
    """Return what a replay that is done has found; `now`: until when reviews count."""
    order, checkpoint = replay.order, replay.checkpoint()
    lives = stored.lives(order.tenant_id)
    live, candidate = ({(stop.agent_id, stop.life): stop for stop in stops} for stops in replay.stops())
    met = set(checkpoint.reproduced)
    missing = list(_not_reproduced([one for one in replay.recorded if one.event_id not in met], live, lives))
    made = {(stop.agent_id, lives.at(stop.agent_id, stop.at)): stop.at for stop in replay.recorded}
    verdicts = Verdicts(order, lives, stored.reviews(order.tenant_id, before=now))
    fates = _fates(live, candidate, made, verdicts)
    return ReplayFindings(
        order=order,
        events=checkpoint.events,
        recorded=len(replay.recorded),
        reproduced=len(replay.recorded) - len(missing),
        not_reproduced=missing,
        unrecorded=len(live.keys() - made.keys()),
        equal_scores=checkpoint.equal,
        comparable_scores=checkpoint.comparable,
        live_stops=len(live),
        candidate_stops=len(candidate),
        counts=_counts(fates),
        agents=fates[:MOST_ROWS],
    )


def _not_reproduced(
    missing: list[RecordedStop], live: dict[Life, Stop], lives: Lives
) -> Iterable[NotReproduced]:
    kept = stored.are_stored({one.event_id for one in missing})
    for one in missing:
        stop = live.get((one.agent_id, lives.at(one.agent_id, one.at)))
        if stop is not None:
            reason = f"the replay stops it by event {stop.event_id} of {stop.at:%Y-%m-%d %H:%M:%S} UTC"
        elif one.event_id not in kept:
            reason = "its events are past their retention"
        else:
            reason = f"its stored events do not reach the present threshold; recorded then: {one.words}"
        yield NotReproduced(one.agent_id, one.at, reason)


def _fates(
    live: dict[Life, Stop], candidate: dict[Life, Stop], made: dict[Life, datetime], verdicts: Verdicts
) -> list[Fate]:
    met = live.keys() | candidate.keys() | verdicts.confirmed.keys()
    names = dict(Agent.objects.filter(id__in={life[0] for life in met}).values_list("id", "name"))
    fates = []
    for life in met:
        old, new, confirmed = live.get(life), candidate.get(life), verdicts.confirmed.get(life, [])
        fates.append(
            Fate(
                agent_id=life[0],
                agent=names.get(life[0], ""),
                fate=_fate(old, new),
                verdict=verdicts.of(life, (old, new)),
                confirmed=len(confirmed),
                first_confirmed_at=confirmed[0] if confirmed else None,
                stopped_at=made.get(life),
                live=old,
                candidate=new,
                earlier_seconds=(old.at - new.at).total_seconds() if old and new else None,
            )
        )
    return sorted(fates, key=_sort_key)


def _fate(live: Stop | None, candidate: Stop | None) -> str:
    if live is None or candidate is None:
        return NEW if candidate else MISSED if live else NEITHER
    if candidate.at == live.at:
        return SAME
    return EARLIER if candidate.at < live.at else LATER


def _sort_key(one: Fate) -> tuple[int, int, datetime, UUID]:
    first = min(at for at in (one.first_confirmed_at, *(s.at for s in (one.live, one.candidate) if s)) if at)
    return VERDICTS.index(one.verdict), FATES.index(one.fate), first, one.agent_id


def _counts(fates: list[Fate]) -> dict[str, dict[str, int]]:
    counted = Counter((one.fate, one.verdict) for one in fates)
    return {fate: {verdict: counted[fate, verdict] for verdict in VERDICTS} for fate in FATES}
