"""Replay a tenant's stored events through the live policy and a candidate: whom each would have stopped.

It reads the database and writes nothing. A checkpoint taken between two steps leads to the same end.
"""

from contextlib import closing
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from compliance.core.identifiers import first_id_at, moment_of
from events.querysets import MADE_WITHIN
from events.risk.evaluation import stored
from events.risk.evaluation.policy import RiskPolicy, is_breach, weighing
from events.risk.evaluation.rescoring import Rescoring, RescoringState
from events.risk.evaluation.stored import StoredEvent
from events.risk.scoring.model import MODEL_VERSION

SETTLED = timedelta(seconds=30)  # age from which no event with an earlier id is still to come


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
        is_over = is_breach([one.at for one in last], strikes=policy.strikes, window=policy.window)
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

    `events`: how many were read: all if they are scored anew, else those that may be strikes. `reproduced`:
    events of recorded revocations that find their agent over the live threshold. `equal` of `comparable`:
    scores stored by this version of the model that were met again.
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


_packer, _unpacker = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(ReplayCheckpoint)


class Replay:
    """One replay under way, from the beginning or from a checkpoint of the same order.

    `recorded`: the revocations that the service made by itself in the period.
    """

    def __init__(self, order: Order, checkpoint: ReplayCheckpoint | None = None) -> None:
        self.order = order
        after = UUID(int=0)  # the first event: scoring anew needs all that an agent did
        if order.since is not None and not order.candidate.rescored:
            # Strikes of the window before count in the period.
            window = max(order.live.window, order.candidate.window)
            after = first_id_at(order.since - window - MADE_WITHIN)
        self.reached = checkpoint or ReplayCheckpoint(order=order, after=after)
        self.lives = stored.lives(order.tenant_id)
        self.recorded = stored.recorded_stops(order.tenant_id, since=order.since, until=order.until)
        self._recorded_events = {one.event_id for one in self.recorded}
        self._rescoring: Rescoring | None = None
        if order.candidate.rescored:
            self._rescoring = Rescoring(
                reviews=stored.reviews(order.tenant_id, before=order.until),
                policy=order.candidate,
                learned=self.reached.learned,
            )

    @property
    def progress(self) -> float:
        """The share that is done, 0 to 1, by the time of receipt."""
        began, after = self.reached.began, moment_of(self.reached.after)
        return 0.0 if began is None else min((after - began) / (self.order.until - began), 1.0)

    def run(self, *, most: int) -> bool:
        """Replay `most` more events or somewhat more; return whether that was the end."""
        order, goal = self.order, self.reached.events + most
        rescores = self._rescoring is not None
        pieces = stored.stream(
            order.tenant_id,
            after=self.reached.after,
            before=first_id_at(order.until),
            least=order.live.threshold if rescores else min(order.live.threshold, order.candidate.threshold),
            with_details=rescores,
        )
        with closing(pieces):
            for rows in pieces:
                if self._rescoring is not None:
                    self._rescoring.contexts.read_agents({row.agent_id for row in rows})
                with weighing(order.candidate):
                    for row in rows:
                        self._count(row)
                self.reached.began = self.reached.began or rows[0].received_at
                self.reached.events += len(rows)
                self.reached.after = rows[-1].id
                if self.reached.events >= goal:
                    return False
        return True

    def packed(self) -> bytes:
        """Return a checkpoint for `resumed()`."""
        if self._rescoring is not None:
            self.reached.learned = self._rescoring.learned()
        return _packer.encode(self.reached)

    def stops(self) -> tuple[list[Stop], list[Stop]]:
        """Return the stops of the period under the live policy and under the candidate, in order."""
        live, candidate = (
            [stop for stop in course.stops if self.order.since is None or stop.at >= self.order.since]
            for course in (self.reached.live, self.reached.candidate)
        )
        return live, candidate

    def _count(self, row: StoredEvent) -> None:
        reached, score, reasons = self.reached, row.score, row.reasons
        if self._rescoring is not None:
            verdict = self._rescoring.score(row)
            score, reasons = verdict.score, [reason.name for reason in verdict.reasons]
            reached.comparable += row.model_version == verdict.model_version
            reached.equal += row.model_version == verdict.model_version and score == row.score
        if row.score >= self.order.live.threshold:
            is_over = self._strike(reached.live, self.order.live, row, row.score, row.reasons)
            if is_over and row.id in self._recorded_events:
                reached.reproduced.append(row.id)
        if score >= self.order.candidate.threshold:
            self._strike(reached.candidate, self.order.candidate, row, score, reasons)

    def _strike(
        self, course: Course, policy: RiskPolicy, row: StoredEvent, score: float, reasons: list[str]
    ) -> bool:
        strike = Strike(row.id, row.received_at, row.action_type, score, reasons)
        return course.strike(policy, row.agent_id, self.lives.at(row.agent_id, row.received_at), strike)


def resumed(order: Order, data: bytes) -> Replay:
    """Return the replay of `order` where it was packed; at its start if this version can't read `data`."""
    try:
        checkpoint = _unpacker.decode(data) if data else None
    except msgspec.MsgspecError:
        checkpoint = None
    return Replay(order, checkpoint if checkpoint is not None and checkpoint.order == order else None)
