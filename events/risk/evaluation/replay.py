"""Replay a tenant's stored events through the live policy and a candidate: whom each would have stopped.

It reads the database and writes nothing. A `ReplayCheckpoint` taken between two steps leads to the same end.
"""

from collections.abc import Generator
from contextlib import closing
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from compliance.core.errors import Invalid
from compliance.core.identifiers import first_id_at, moment_of
from events.querysets import MADE_WITHIN
from events.risk.evaluation import stored
from events.risk.evaluation.policy import RiskPolicy, weighing
from events.risk.evaluation.rescoring import Rescoring, RescoringState
from events.risk.evaluation.stored import EventSpan, StoredEvent
from events.risk.scoring.contract import ScoreReason
from events.risk.scoring.model import MODEL_VERSION

STEP_EVENTS = 20_000  # events of one step, after which progress is shown and the checkpoint stored
SETTLED = timedelta(seconds=30)  # age from which no event with an earlier id is still to come
_reasons = msgspec.json.Decoder(list[ScoreReason])


class Strike(msgspec.Struct, frozen=True):
    event_id: UUID
    at: datetime
    action_type: str
    score: float
    reasons: list[str]


class Stop(msgspec.Struct, frozen=True):
    """When and why a policy stops an agent; `life` counts the agent's reinstatements before."""

    agent_id: UUID
    life: int
    at: datetime
    strikes: list[Strike]

    @property
    def event_id(self) -> UUID:
        return self.strikes[-1].event_id


class Course(msgspec.Struct):
    """What a policy has come to: the strikes of each agent's present life, and its stops in order."""

    lives: dict[UUID, int] = {}
    strikes: dict[UUID, list[Strike]] = {}
    stopped: set[UUID] = set()
    stops: list[Stop] = []

    def strike(self, policy: RiskPolicy, agent_id: UUID, life: int, strike: Strike) -> bool:
        """Count an event that is a strike to the policy; return whether the agent is then over the threshold.

        The first such event of a life stops it. Others follow it if the service let the agent go on.
        """
        if self.lives.get(agent_id) != life:
            self.lives[agent_id], self.strikes[agent_id] = life, []
            self.stopped.discard(agent_id)
        last = self.strikes[agent_id] = [*self.strikes[agent_id], strike][-policy.strikes :]
        is_over = policy.stops([one.at for one in last])
        if is_over and agent_id not in self.stopped:
            self.stopped.add(agent_id)
            self.stops.append(Stop(agent_id, life, strike.at, last))
        return is_over


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What to replay: stops within [since, until) are reported; without `since` all of them."""

    tenant_id: UUID
    live: RiskPolicy
    candidate: RiskPolicy
    since: datetime | None = None
    until: datetime
    model_version: str = MODEL_VERSION


class ReplayCheckpoint(msgspec.Struct):
    """How far a replay has come: through the event `after`, from one received at `began`.

    `reproduced`: events of recorded revocations that find their agent over the live threshold. `equal` of
    `comparable`: scores stored by this version of the model that were met again.
    """

    order: Order
    after: UUID
    began: datetime | None = None
    events: int = 0
    equal: int = 0
    comparable: int = 0
    reproduced: list[UUID] = []
    live: Course = msgspec.field(default_factory=Course)
    candidate: Course = msgspec.field(default_factory=Course)
    learned: RescoringState = msgspec.field(default_factory=RescoringState)
    is_done: bool = False


_packer, _unpacker = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(ReplayCheckpoint)


class Replay:
    """One replay under way, from the beginning or from a checkpoint of the same order.

    `recorded`: the revocations that the service made by itself in the period.
    """

    def __init__(self, order: Order, checkpoint: ReplayCheckpoint | None = None) -> None:
        self.order = order
        self._reached = checkpoint or ReplayCheckpoint(order=order, after=_beginning(order))
        self._lives = stored.lives(order.tenant_id)
        self.recorded = stored.recorded_stops(order.tenant_id, since=order.since, until=order.until)
        self._recorded_events = {one.event_id for one in self.recorded}
        self._rescoring = self._rescored() if order.candidate.rescored else None
        self._before = first_id_at(order.until)

    @property
    def is_done(self) -> bool:
        return self._reached.is_done

    @property
    def events(self) -> int:
        """The number of events read: all if they are scored anew, else those that may be strikes."""
        return self._reached.events

    @property
    def progress(self) -> float:
        """The share that is done, 0 to 1, by the time of receipt."""
        began, after = self._reached.began, self._reached.after
        if self.is_done or began is None:
            return float(self.is_done)
        return min((moment_of(after) - began) / (self.order.until - began), 1.0)

    def run(self, *, most: int) -> bool:
        """Replay `most` more events or somewhat more; return whether that was the end."""
        goal = self._reached.events + most
        with closing(self._rest()) as pieces:
            for rows in pieces:
                self._replay(rows)
                if self._reached.events >= goal:
                    return False
        self._reached.is_done = True
        return True

    def checkpoint(self) -> ReplayCheckpoint:
        if self._rescoring is not None:
            self._reached.learned = self._rescoring.learned()
        return self._reached

    def packed(self) -> bytes:
        """Return the checkpoint for `resumed()`."""
        return _packer.encode(self.checkpoint())

    def stops(self) -> tuple[list[Stop], list[Stop]]:
        """Return the stops of the period under the live policy and under the candidate, in order."""
        live, candidate = (
            [stop for stop in course.stops if self.order.since is None or stop.at >= self.order.since]
            for course in (self._reached.live, self._reached.candidate)
        )
        return live, candidate

    def _rescored(self) -> Rescoring:
        return Rescoring(
            reviews=stored.reviews(self.order.tenant_id, before=self.order.until),
            scope_rule=self.order.candidate.scope_rule,
            learned=self._reached.learned,
        )

    def _rest(self) -> Generator[list[StoredEvent], None, None]:
        """Return the events that are still to be replayed: all of them, or those that may be strikes."""
        order, rescores = self.order, self._rescoring is not None
        least = order.live.threshold if rescores else min(order.live.threshold, order.candidate.threshold)
        span = EventSpan(order.tenant_id, self._reached.after, self._before)
        return stored.stream(span, least=least, with_details=rescores)

    def _replay(self, rows: list[StoredEvent]) -> None:
        if self._rescoring is not None:
            self._rescoring.read_agents({row.agent_id for row in rows})
        with weighing(self.order.candidate):
            for row in rows:
                self._count(row)
        self._reached.began = self._reached.began or rows[0].received_at
        self._reached.events += len(rows)
        self._reached.after = rows[-1].id

    def _count(self, row: StoredEvent) -> None:
        live, candidate = self.order.live, self.order.candidate
        as_stored, score = row.score, row.score
        reasons: list[str] | None = None
        if self._rescoring is not None:
            verdict = self._rescoring.score(row)
            score, reasons = verdict.score, [reason.name for reason in verdict.reasons]
            self._reached.comparable += row.model_version == verdict.model_version
            self._reached.equal += row.model_version == verdict.model_version and score == as_stored
        if live.is_strike(as_stored):
            is_over = self._strike(self._reached.live, live, row, as_stored, _names(row))
            if is_over and row.id in self._recorded_events:
                self._reached.reproduced.append(row.id)
        if candidate.is_strike(score):
            names = _names(row) if reasons is None else reasons
            self._strike(self._reached.candidate, candidate, row, score, names)

    def _strike(
        self, course: Course, policy: RiskPolicy, row: StoredEvent, score: float, reasons: list[str]
    ) -> bool:
        strike = Strike(row.id, row.received_at, row.action_type, score, reasons)
        life = self._lives.at(row.agent_id, row.received_at)
        return course.strike(policy, row.agent_id, life, strike)


def resumed(data: bytes, order: Order, *, any_end: bool = False) -> Replay:
    """Return the replay of `order` where it was packed; with `any_end` it keeps the end it was begun with.

    Raises Invalid if `data` is no checkpoint of this order made by this version.
    """
    try:
        checkpoint = _unpacker.decode(data)
    except msgspec.MsgspecError as error:
        raise Invalid(f"The checkpoint is unreadable: {error}") from error
    if any_end:
        order = msgspec.structs.replace(order, until=checkpoint.order.until)
    if checkpoint.order != order:
        raise Invalid("The checkpoint belongs to another replay: of other policies, times, tenant or version")
    return Replay(order, checkpoint)


def _beginning(order: Order) -> UUID:
    """Return the id behind which to begin: at the first event when all are scored, else one window early."""
    if order.since is None or order.candidate.rescored:
        return UUID(int=0)
    window = max(order.live.window, order.candidate.window)
    return first_id_at(order.since - window - MADE_WITHIN)


def _names(row: StoredEvent) -> list[str]:
    return [reason.name for reason in _reasons.decode(row.reasons or "[]")]
