"""From events as received to stored, scored events: ordinary ones together, the others one by one.

Ordinary events, however many, cost one read of their agents, one of the scorer's states and one insert. An
event gets a transaction of its own in four cases. It scores high: its agent is locked, its strikes are
counted, and what follows commits with it. The names in it may not be those of the scope: an alert says so
once for each agent. The state of its agent has to be rebuilt. Or it follows such an event.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from functools import partial
from time import monotonic
from uuid import UUID

import msgspec
from django.db import DataError, IntegrityError, OperationalError

from agents.errors import AgentNotActive, AgentNotFound
from agents.models import Agent
from agents.risk import band_of
from compliance.core import environments
from compliance.core.errors import Busy, Invalid, ServiceError, Unavailable
from compliance.core.identifiers import new_id_at
from compliance.observing import correlation, metrics
from compliance.stores import sql
from events.ingest import reactions, standing, storage
from events.ingest.event_input import EventInput
from events.ingest.standing import AgentStanding
from events.ingest.storage import ScoredEvent
from events.models import RiskBand
from events.risk import baselines, snapshots, state_cache
from events.risk.scoring.contract import Event, RiskVerdict
from events.risk.scoring.model import fold, relearn
from events.risk.scoring.state import IMPOSSIBLE, AgentState, Baseline, encode_state
from events.risk.state_cache import CachedState, StateUpdate

log = logging.getLogger(__name__)


class Submission(msgspec.Struct, frozen=True, gc=False):
    """An event as it was received: from whom (`tenant_id`) and when."""

    tenant_id: UUID
    event: EventInput
    received_at: datetime


RISK_MARGIN = 0.005
LOW, HIGH = RiskBand.LOW.value, RiskBand.HIGH.value  # plain texts, which compare quickly

Uncommitted = dict[str, CachedState]
"""The states that a transaction which has not committed yet made, by agent."""


class Draft(msgspec.Struct):
    """The part of one agent in a group: its state so far, and the rows to be stored.

    `is_stopped`: later events of the group are deferred. `is_lost`: the state can't be used, so all are.
    """

    agent: AgentStanding
    seen: CachedState
    state: AgentState
    baseline: Baseline | None = None
    events: list[Event] = []
    rows: list[ScoredEvent] = []
    is_stopped: bool = False
    is_lost: bool = False

    def score(self, submission: Submission) -> ScoredEvent:
        given, at = submission.event, submission.received_at
        event = Event(given.action_type, at.timestamp(), given.details)
        verdict = fold(self.state, event, self.agent.profile.context, self.baseline)
        row = _row(submission, self.agent, verdict)
        self.events.append(event)
        self.rows.append(row)
        return row

    def bands(self) -> list[str]:
        return [row.risk_band for row in self.rows]

    def update(self) -> StateUpdate:
        return StateUpdate(
            agent_id=self.agent.id,
            seen=self.seen.tag,
            packed=encode_state(self.state),
            events=self.events,
            bands=self.bands(),
            ids=[row.id for row in self.rows],
            tag=bytes.fromhex(self.rows[-1].id.replace("-", "")),
        )


class DeferredEvent(msgspec.Struct, frozen=True):
    """An event that needs a transaction of its own, and what is known of it.

    `scored` has the event's row alone, where nothing of its agent was scored before it in the group.
    """

    submission: Submission
    agent: AgentStanding
    scored: Draft | None = None


Failed = dict[str, Unavailable | None]
"""Agents of which no row is stored: with an error, or None where each event is to be tried by itself.

That is where PostgreSQL rejects a row, and where the state can't be used.
"""
Outcome = ScoredEvent | ServiceError | DeferredEvent


def ingest_all(
    submissions: Sequence[Submission], *, until: float | None = None
) -> list[ScoredEvent | ServiceError | None]:
    """Store each event, those of one agent in the given order; return its row or its error, in order.

    From `until` on (of the monotonic clock) it begins nothing more; what is left is None.
    Raises: OperationalError if PostgreSQL is away; if it goes away in between, the rest are `Unavailable`.
    """
    outcomes: list[Outcome | None] = [None] * len(submissions)
    pending = list(range(len(submissions)))
    uncommitted: Uncommitted = {}
    try:
        while pending:
            together = ingest_together([submissions[index] for index in pending], uncommitted)
            deferred: dict[str, tuple[int, DeferredEvent]] = {}
            for index, outcome in zip(pending, together, strict=True):
                if isinstance(outcome, DeferredEvent):
                    # Of an agent the first; those behind it follow in the next turn.
                    deferred.setdefault(submissions[index].event.agent_id, (index, outcome))
                else:
                    outcomes[index] = outcome
            for index, first in deferred.values():
                outcomes[index] = ingest_deferred(first, uncommitted)
                if until is not None and monotonic() >= until:
                    return _settled(outcomes, None)
            pending = [index for index in pending if outcomes[index] is None]
    except sql.OUTAGES as error:
        if environments.in_transaction() or all(outcome is None for outcome in outcomes):
            raise
        log.warning("the rest of a request not stored: %s", sql.error_name(error))
    return _settled(outcomes, Unavailable())


def _settled(
    outcomes: Sequence[Outcome | None], rest: ServiceError | None
) -> list[ScoredEvent | ServiceError | None]:
    return [outcome if isinstance(outcome, ScoredEvent | ServiceError) else rest for outcome in outcomes]


def ingest_together(
    submissions: Sequence[Submission], uncommitted: Uncommitted | None = None
) -> list[Outcome]:
    """Store the ordinary events of a group in one insert; return `DeferredEvent` in place of the others.

    `uncommitted` has the states made before in the same request. On return outside a transaction, what has a
    row is durable. Raises: `sql.OUTAGES`; then no event is stored. Events are `Unavailable` where
    PostgreSQL went away after others were stored.
    """
    uncommitted = {} if uncommitted is None else uncommitted
    now = submissions[-1].received_at
    agents = standing.of_agents(
        {(submission.tenant_id, submission.event.agent_id) for submission in submissions}, now=now
    )
    drafts = drafts_of(agents.values(), uncommitted, now=now)
    outcomes = [
        _outcome(submission, agents.get(submission.event.agent_id), drafts) for submission in submissions
    ]
    # Neighbours in the indexes of agents, stored one after the other, are on the same pages.
    usable = (draft for draft in drafts.values() if draft.rows and not draft.is_lost)
    failed = _store_all(sorted(usable, key=lambda draft: draft.agent.id), uncommitted)
    failed |= {draft.agent.id: None for draft in drafts.values() if draft.is_lost}
    if not failed:
        return outcomes
    return [
        (failed[outcome.agent_id] or DeferredEvent(submission, agents[outcome.agent_id]))
        if isinstance(outcome, ScoredEvent) and outcome.agent_id in failed
        else outcome
        for submission, outcome in zip(submissions, outcomes, strict=True)
    ]


def _outcome(submission: Submission, agent: AgentStanding | None, drafts: dict[str, Draft]) -> Outcome:
    """The row of an ordinary event; the error, if its agent may not report; else `DeferredEvent`."""
    if agent is None or agent.profile.tenant_id.int != submission.tenant_id.int:
        return AgentNotFound()
    if not agent.may_report:
        return AgentNotActive()
    draft = drafts.get(agent.id)
    if draft is None or draft.is_stopped:
        return DeferredEvent(submission, agent)
    try:
        row = draft.score(submission)
    except IMPOSSIBLE:
        draft.is_stopped = draft.is_lost = True
        return DeferredEvent(submission, agent)
    if not _has_consequences(row):
        return row
    # The draft ends before the event.
    draft.is_stopped = True
    event, row = draft.events.pop(), draft.rows.pop()
    if draft.rows:
        known, context = zip(draft.events, draft.bands(), strict=True), draft.agent.profile.context
        draft.state = relearn(known, start=draft.seen.state, context=context, baseline=draft.baseline)
        return DeferredEvent(submission, draft.agent)
    scored = Draft(draft.agent, draft.seen, draft.state, draft.baseline, [event], [row])
    return DeferredEvent(submission, draft.agent, scored)


def _has_consequences(row: ScoredEvent) -> bool:
    return row.risk_band != LOW and (row.risk_band == HIGH or reactions.is_mismatched(row))


def _store_all(drafts: Sequence[Draft], uncommitted: Uncommitted) -> Failed:
    """Store the drafts in one transaction; where PostgreSQL rejects a row, halves have one each.

    Return the agents none of whose rows is stored. Raises: `sql.OUTAGES`; then nothing is stored.
    """
    if not drafts or _store(drafts, uncommitted):
        return {}
    if len(drafts) == 1:
        return {drafts[0].agent.id: None}
    half = len(drafts) // 2
    failed = _store_all(drafts[:half], uncommitted)
    try:
        return failed | _store_all(drafts[half:], uncommitted)
    except sql.OUTAGES as error:
        if environments.in_transaction() or len(failed) == half:
            raise
        log.warning("events not stored: %s", sql.error_name(error))
        return failed | {draft.agent.id: Unavailable() for draft in drafts[half:]}


def drafts_of(
    agents: Iterable[AgentStanding], uncommitted: Uncommitted, *, now: datetime
) -> dict[str, Draft]:
    """One for each agent that may report and whose state is at hand, or begins now."""
    able = {agent.id: agent for agent in agents if agent.may_report}
    recalled = _recall(able, uncommitted)
    found, lost = {}, {}
    for agent_id, seen in recalled.items():
        state = seen.state
        if state is None:
            lost[agent_id] = able[agent_id].has_limits
        else:
            found[agent_id] = Draft(able[agent_id], seen, state)
    states = snapshots.from_snapshots(lost, now=now)
    unknown = [name for name in lost if name not in states and recalled[name].tag == state_cache.ABSENT]
    states |= {name: AgentState() for name in snapshots.without_history(unknown, now=now)}
    for agent_id, state in states.items():
        seen = msgspec.structs.replace(recalled[agent_id], packed=encode_state(state))
        found[agent_id] = Draft(able[agent_id], seen, state)
    _lend_baselines(found.values(), now=now)
    return found


def _lend_baselines(drafts: Collection[Draft], *, now: datetime) -> None:
    known = baselines.of_tenants({draft.agent.profile.tenant_id for draft in drafts}, now=now)
    if known:
        for draft in drafts:
            draft.baseline = known.get(draft.agent.profile.tenant_id)


def _recall(agent_ids: Collection[str], uncommitted: Uncommitted) -> Mapping[str, CachedState]:
    """The state of each agent: the one this transaction made, or the stored one."""
    unknown = [agent_id for agent_id in agent_ids if agent_id not in uncommitted]
    known = {agent_id: uncommitted[agent_id] for agent_id in agent_ids if agent_id in uncommitted}
    return known | dict(state_cache.load(unknown)) if unknown else known


def _store(drafts: Sequence[Draft], uncommitted: Uncommitted) -> bool:
    """Insert the rows and store what they taught; return False if PostgreSQL rejects one of them."""
    risks = {
        draft.agent.id: worst
        for draft in drafts
        if _is_worse(worst := max([row.risk_score for row in draft.rows]), draft.agent.present_risk)
    }
    rows = [row for draft in drafts for row in draft.rows]
    try:
        # A rejected row must not end the transaction of the caller.
        with environments.atomic() if environments.in_transaction() else nullcontext():
            storage.insert(rows, risks=risks)
    except (DataError, IntegrityError):
        return False
    _after_commit(drafts, uncommitted)
    return True


def _after_commit(drafts: Sequence[Draft], uncommitted: Uncommitted) -> None:
    """Save the new states, and count the rows by band and model, once the rows are committed."""
    updates = [draft.update() for draft in drafts]
    if environments.in_transaction():
        uncommitted.update({one.agent_id: CachedState(one.packed, one.tag) for one in updates})
    environments.on_commit(partial(state_cache.save, updates), robust=True)
    name = metrics.environment()
    found = Counter((row.risk_band, row.model_version) for draft in drafts for row in draft.rows)

    def count() -> None:
        for (band, model), number in found.items():
            metrics.labelled(metrics.SCORED, name, band, model).inc(number)

    environments.on_commit(count, robust=True)


def _is_worse(score: float, present_risk: float) -> bool:
    """Whether to write an ordinary event's risk; risks fade, so without a margin each equal event would."""
    return score > present_risk + RISK_MARGIN or (
        score > present_risk and band_of(score) != band_of(present_risk)
    )


def ingest_deferred(
    deferred: DeferredEvent, uncommitted: Uncommitted | None = None
) -> ScoredEvent | ServiceError:
    """Store one event with all that follows from it, in a transaction of its own; its row or its error."""
    uncommitted = {} if uncommitted is None else uncommitted
    draft = deferred.scored or _scored(deferred, uncommitted)
    (row,) = draft.rows
    correlation.bind(tenant=row.tenant_id, agent=row.agent_id)
    try:
        with environments.atomic():
            _store_with_consequences(row, deferred.agent)
    except (DataError, IntegrityError) as error:
        return Invalid(f"The event can't be stored: {type(error).__name__}")
    except ServiceError as error:
        return error
    except OperationalError as error:
        if not sql.is_of_lock(error):
            raise
        return Busy(retry_after=1)
    _after_commit([draft], uncommitted)
    return row


def _scored(deferred: DeferredEvent, uncommitted: Uncommitted) -> Draft:
    """The event scored on the state its agent has now, which is rebuilt if need be."""
    agent, now = deferred.agent, deferred.submission.received_at
    seen = _recall([agent.id], uncommitted)[agent.id]
    rebuild = partial(snapshots.rebuild, agent_id=agent.id, has_limits=agent.has_limits, now=now)
    draft = Draft(agent, seen, seen.state or rebuild())
    _lend_baselines([draft], now=now)
    try:
        draft.score(deferred.submission)
    except IMPOSSIBLE as error:
        log.warning("an agent's state is impossible, rebuilding it: %s", type(error).__name__)
        # A snapshot may have been taken of it.
        draft.state = rebuild(from_snapshot=False)
        draft.score(deferred.submission)
    return draft


def _store_with_consequences(row: ScoredEvent, agent: AgentStanding) -> None:
    """Insert the event and write what follows from it, inside the transaction of the caller."""
    now, locked = row.received_at, None
    if _has_consequences(row):
        locked = Agent.objects.for_tenant(agent.profile.tenant_id).locked().find(row.agent_id)
    # Others may have stopped the agent since its group began.
    if not standing.of_agents([(agent.profile.tenant_id, agent.id)], now=now)[agent.id].may_report:
        raise AgentNotActive()
    storage.insert([row], risks={agent.id: row.risk_score})
    permitted = agent.profile.context.permitted_actions
    if locked is not None and row.risk_band == HIGH:
        reactions.react(agent=locked, event=row, now=now)
    if locked is not None and permitted is not None and reactions.is_mismatched(row):
        reactions.announce_mismatch(agent=locked, permitted=permitted, event=row, now=now)


def _row(submission: Submission, agent: AgentStanding, verdict: RiskVerdict) -> ScoredEvent:
    event = submission.event
    return ScoredEvent(
        new_id_at(submission.received_at),
        agent.profile.tenant_text,
        event.agent_id,
        event.action_type,
        verdict.score,
        verdict.band,
        event.occurred_at or submission.received_at,
        submission.received_at,
        event.details,
        event.session_id,
        event.chain_id,
        verdict.reasons,
        verdict.model_version,
        event.decision_id,
    )
