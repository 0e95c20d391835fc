"""Score a tenant's stored events anew, in order of receipt, as the live service would have.

States, baseline, marked places and reviews exist only in memory and change at the moment of the stream at
which the live service changed its own. What it reads of an agent's limits and domain is today's; scopes are
those certified at the time.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta
from itertools import chain
from typing import Any
from uuid import UUID

import msgspec

from agents.models import Agent
from certificates.models import Certificate
from compliance.core.identifiers import first_id_at
from compliance.core.json_values import from_stored
from events.models import EventReview, ReviewVerdict
from events.risk.baselines import DELAY, MOST_SUMMED_UP
from events.risk.evaluation import stored
from events.risk.evaluation.policy import RiskPolicy
from events.risk.evaluation.stored import StoredEvent
from events.risk.marks import context_of
from events.risk.scoring.contract import Context, Event, Marks, RiskVerdict
from events.risk.scoring.learning import unlearn
from events.risk.scoring.marked import may_be_marked, weighed
from events.risk.scoring.model import fold, teach_late
from events.risk.scoring.state import (
    AgentState,
    Baseline,
    decode_baseline,
    decode_state,
    encode_baseline,
    encode_state,
    pool,
    sum_up_surprises,
)

POOL_EVERY = timedelta(minutes=10)  # of the stream's time; the live service pools each minute
MOST_AWAKE = 2_000  # states that are kept unpacked
LOW = "low"
ID = 16


class ReviewedEvent(msgspec.Struct):
    """An event that officers judged, as the replay met it; `verdict`: the last so far."""

    agent_id: UUID
    event: Event
    band: str
    verdict: str | None = None
    was_confirmed: bool = False


class RescoringState(msgspec.Struct):
    """What the replay has learned so far, ready to be stored.

    `low`: ids of low events that wait to be pooled, one after the other. `reviews`, `dismissals`: how many
    reviews the states and the baseline have taken in.
    """

    states: dict[UUID, bytes] = {}
    baseline: bytes = b""
    low: bytes = b""
    pooled_at: datetime | None = None
    reviews: int = 0
    dismissals: int = 0
    reviewed: dict[UUID, ReviewedEvent] = {}


Said = tuple[str, float, bool]
"""A place, when its event was reviewed, and whether that speaks for a mark."""


class Rescoring:
    """Scores the events of one tenant, which come in order of receipt; goes on from what was `learned`.

    `contexts.read_agents()` comes before an agent's first event.
    """

    def __init__(self, *, reviews: list[EventReview], policy: RiskPolicy, learned: RescoringState) -> None:
        self._packed, self._awake = dict(learned.states), dict[UUID, AgentState]()
        self._baseline = decode_baseline(learned.baseline) if learned.baseline else Baseline()
        self._low, self._pooled_at = bytearray(learned.low), learned.pooled_at
        self._reviews, self._next_review, self._next_dismissal = reviews, learned.reviews, learned.dismissals
        self._to_be_reviewed = {review.event_id for review in reviews}
        self._reviewed = dict(learned.reviewed)
        self._said: dict[UUID, list[Said]] = {}
        self.contexts = Contexts(policy)
        for review in reviews[: learned.reviews]:
            self._mark(review, self._reviewed.get(review.event_id))

    def learned(self) -> RescoringState:
        """Return a copy of what it has learned."""
        states = self._packed | {name: encode_state(state) for name, state in self._awake.items()}
        return RescoringState(
            states=states,
            baseline=encode_baseline(self._baseline),
            low=bytes(self._low),
            pooled_at=self._pooled_at,
            reviews=self._next_review,
            dismissals=self._next_dismissal,
            reviewed=self._reviewed,
        )

    def score(self, row: StoredEvent) -> RiskVerdict:
        """Return the event's verdict, and learn from it."""
        at = row.received_at
        self._take_in_reviews(at)
        if self._pooled_at is None or at >= self._pooled_at + POOL_EVERY:
            self._pool(at)
        event = Event(row.action_type, at.timestamp(), from_stored(row.details or "null"))
        verdict = fold(self._state(row.agent_id), event, self.contexts.of(row.agent_id, at), self._baseline)
        if verdict.band == LOW:
            self._low += row.id.bytes
        if row.id in self._to_be_reviewed:
            self._reviewed[row.id] = ReviewedEvent(row.agent_id, event, verdict.band)
        return verdict

    def _state(self, agent_id: UUID) -> AgentState:
        state = self._awake.get(agent_id)
        if state is None:
            if len(self._awake) >= MOST_AWAKE:
                self._packed |= {name: encode_state(one) for name, one in self._awake.items()}
                self._awake.clear()
            packed = self._packed.get(agent_id)
            state = self._awake[agent_id] = AgentState() if packed is None else decode_state(packed)
        return state

    def _take_in_reviews(self, at: datetime) -> None:
        """Take in the reviews made before that moment, as `events.inbox.reviewing` does."""
        while self._next_review < len(self._reviews) and self._is_past(self._next_review, at):
            review = self._reviews[self._next_review]
            self._next_review += 1
            reviewed = self._reviewed.get(review.event_id)
            self._mark(review, reviewed)
            if reviewed is None or reviewed.verdict == review.verdict:
                continue
            state = self._state(reviewed.agent_id)
            if review.verdict == ReviewVerdict.CONFIRMED:
                was_dismissed = reviewed.verdict == ReviewVerdict.DISMISSED
                was_learned = was_dismissed or (reviewed.verdict is None and reviewed.band == LOW)
                unlearn(state, reviewed.event, review.marked, was_learned=was_learned)
            elif reviewed.band != LOW or reviewed.was_confirmed:
                context = self.contexts.of(reviewed.agent_id, review.reviewed_at)
                teach_late(state, reviewed.event, context)
            reviewed.verdict = review.verdict
            reviewed.was_confirmed |= review.verdict == ReviewVerdict.CONFIRMED

    def _mark(self, review: EventReview, reviewed: ReviewedEvent | None) -> None:
        """Have the review's places speak for a mark, or those that a dismissed event met against it."""
        at, is_confirmed = review.reviewed_at.timestamp(), review.verdict == ReviewVerdict.CONFIRMED
        self._said.pop(review.event_id, None)
        names: list[str] = review.marked if is_confirmed else []
        if reviewed is not None and not is_confirmed:
            before = reviewed.event.received_at
            others = chain.from_iterable(self._said.values())
            marked = {name for name, marked_at, sign in others if sign and marked_at < before}
            names = sorted(marked.intersection(may_be_marked(reviewed.event.details)))
        self._said[review.event_id] = [(name, at, is_confirmed) for name in names]
        self.contexts.mark(weighed(chain.from_iterable(self._said.values())))

    def _is_past(self, number: int, moment: datetime) -> bool:
        return self._reviews[number].reviewed_at <= moment

    def _pool(self, at: datetime) -> None:
        """Pool the low events and the dismissals that are an hour old, as `events.risk.baselines` does."""
        self._pooled_at, settled, due = at, first_id_at(at - DELAY).bytes, 0
        while due < len(self._low) and self._low[due : due + ID] < settled:
            due += ID
        ids = [UUID(bytes=bytes(self._low[start : start + ID])) for start in range(0, due, ID)]
        del self._low[:due]
        has_pooled = False
        for event_id, agent_id, action_type, received_at, details in stored.named(ids):
            reviewed = self._reviewed.get(event_id)
            if reviewed is None or not reviewed.was_confirmed:
                event = Event(action_type, received_at.timestamp(), from_stored(details))
                pool(self._baseline, event, agent=agent_id)
                has_pooled = True
        pooled = set[UUID]()
        while self._next_dismissal < len(self._reviews) and self._is_past(self._next_dismissal, at - DELAY):
            review = self._reviews[self._next_dismissal]
            self._next_dismissal += 1
            reviewed = self._reviewed.get(review.event_id)
            if reviewed is None or reviewed.band == LOW or review.event_id in pooled:
                continue
            if reviewed.verdict == review.verdict == ReviewVerdict.DISMISSED:
                pooled.add(review.event_id)
                pool(self._baseline, reviewed.event, agent=str(reviewed.agent_id), trusted=True)
        if has_pooled or pooled:
            last = [
                self._state(agent_id) for agent_id in sorted(self._packed | self._awake)[-MOST_SUMMED_UP:]
            ]
            sum_up_surprises(self._baseline, last, at.timestamp())


class Contexts:
    """The agents' contexts at moments of the past, but with their present alarm budgets or the policy's."""

    def __init__(self, policy: RiskPolicy) -> None:
        self._policy = policy
        self._marked = Marks()
        self._known: dict[UUID, tuple[list[datetime], list[Context]]] = {}
        self._marked_contexts: dict[tuple[UUID, int], Context] = {}

    def mark(self, marks: Marks) -> None:
        """Have these places marked from now on."""
        self._marked = marks
        self._marked_contexts.clear()

    def read_agents(self, agent_ids: Collection[UUID]) -> None:
        """Read the agents that are not known yet, with all their certificates."""
        new = [agent_id for agent_id in agent_ids if agent_id not in self._known]
        if not new:
            return
        self._known |= {agent_id: ([], [Context()]) for agent_id in new}
        certificates: defaultdict[UUID, list[Certificate]] = defaultdict(list)
        for certificate in Certificate.objects.filter(agent_id__in=new).order_by("issued_at", "id"):
            certificates[certificate.agent_id].append(certificate)
        for agent in Agent.objects.filter(id__in=new).select_related("tenant"):
            of_it = certificates[agent.id]
            contexts = [context_of(agent, certificate) for certificate in (None, *of_it)]
            changes: dict[str, Any] = {} if self._policy.scope_rule else {"permitted_actions": None}
            if self._policy.alarm_budget is not None:
                changes["alarm_budget"] = self._policy.alarm_budget
            contexts = [msgspec.structs.replace(one, **changes) for one in contexts]
            self._known[agent.id] = [certificate.issued_at for certificate in of_it], contexts

    def of(self, agent_id: UUID, moment: datetime) -> Context:
        """Return the agent's context at that moment."""
        issued_at, contexts = self._known[agent_id]
        number = bisect_right(issued_at, moment)
        if not self._marked.confirmed:
            return contexts[number]
        key = agent_id, number
        if key not in self._marked_contexts:
            self._marked_contexts[key] = msgspec.structs.replace(contexts[number], marked=self._marked)
        return self._marked_contexts[key]
