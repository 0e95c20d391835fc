"""From reports to stored, scored events: what is ordinary together, what is not one by one.

Ordinary events, however many, cost one look at their agents, one at the scorer's memory and one insert. An
event goes alone when it scores high (its agent is locked, its strikes are counted, and what follows commits
with it), when the scorer's memory of its agent has to be rebuilt, or when it stands behind such a one.
"""

from collections.abc import Collection, Iterable, Sequence
from contextlib import nullcontext
from datetime import datetime
from functools import partial
from typing import Final
from uuid import UUID

import msgspec
from django.db import DataError, IntegrityError, InterfaceError, OperationalError

from agents.errors import AgentNotActive, AgentNotFound
from agents.models import Agent
from agents.risk import band_of
from compliance import environments
from compliance.errors import Invalid, ServiceError, Unavailable
from compliance.identifiers import new_id_at
from events import baselines, memory, rebuilding, rolling, standing, storage, threshold
from events.intake import Report
from events.memory import Lesson, Memory
from events.models import RiskBand
from events.scoring import AgentState, Baseline, Event, Verdict, encode_state, fold, relearn
from events.standing import Standing
from events.storage import ScoredEvent


class Submission(msgspec.Struct, frozen=True, gc=False):
    """A report as it was received: by whom (`tenant_id`) and when."""

    tenant_id: UUID
    report: Report
    received_at: datetime


RISK_MARGIN = 0.005


class _Alone:
    """The outcome of an event that has to be taken alone."""


ALONE: Final = _Alone()
Outcome = ScoredEvent | ServiceError | _Alone
Held = dict[str, Memory]
"""What the scorer learned of agents in a transaction that is not committed yet."""


class _Draft(msgspec.Struct):
    """One agent's part of a group: its state so far, and the rows to be stored."""

    agent: Standing
    seen: Memory
    state: AgentState
    baseline: Baseline | None = None
    events: list[Event] = []
    rows: list[ScoredEvent] = []
    is_stopped: bool = False

    def bands(self) -> list[str]:
        return [row.risk_band for row in self.rows]

    def lesson(self) -> Lesson:
        return Lesson(
            agent_id=self.agent.id,
            seen=self.seen.tag,
            packed=encode_state(self.state),
            events=self.events,
            bands=self.bands(),
            ids=[row.id for row in self.rows],
            tag=bytes.fromhex(self.rows[-1].id.replace("-", "")),
            at=self.events[-1].received_at,
        )


def ingest_all(submissions: Sequence[Submission]) -> list[ScoredEvent | ServiceError]:
    """Store each event, those of one agent in the given order; its row or why there is none, in place.

    Raises `OperationalError` when PostgreSQL is away; one that goes away in between leaves `Unavailable` for
    the events that it no longer took.
    """
    outcomes: list[Outcome] = [ALONE] * len(submissions)
    pending = list(range(len(submissions)))
    held: Held = {}
    try:
        while pending:
            together = ingest_together([submissions[index] for index in pending], held)
            for index, outcome in zip(pending, together, strict=True):
                outcomes[index] = outcome
            pending = [index for index in pending if outcomes[index] is ALONE]
            for index in _first_of_each_agent(submissions, pending):
                outcomes[index] = _ingest_alone(submissions[index], held)
            pending = [index for index in pending if outcomes[index] is ALONE]
    except (OperationalError, InterfaceError):
        if environments.in_transaction() or all(outcome is ALONE for outcome in outcomes):
            raise
    return [Unavailable() if isinstance(outcome, _Alone) else outcome for outcome in outcomes]


def ingest_together(submissions: Sequence[Submission], held: Held | None = None) -> list[Outcome]:
    """Store the ordinary ones among these in one insert; `ALONE` stands for those it left out.

    `held` is what the scorer learned before in the same request.

    When it returns outside a transaction, what has a row is durable. Raises `OperationalError` when
    PostgreSQL is away, and then nothing was acknowledged.
    """
    outcomes: list[Outcome] = [ALONE] * len(submissions)
    held = {} if held is None else held
    agents = standing.of_agents(
        {submission.report.agent_id for submission in submissions}, now=submissions[-1].received_at
    )
    drafts: dict[str, _Draft] = _drafts(agents.values(), held, now=submissions[-1].received_at)
    for index, submission in enumerate(submissions):
        agent_id = submission.report.agent_id
        draft = drafts.get(agent_id)
        if draft is not None and draft.agent.profile.tenant_id.int == submission.tenant_id.int:
            outcomes[index] = _draw_up(draft, submission)
        else:
            outcomes[index] = _refusal(agents.get(agent_id), submission) or ALONE
    # Neighbours in the agents' indexes, stored one after the other, meet the same pages.
    drawn = sorted([draft for draft in drafts.values() if draft.rows], key=_agent_id)
    refused = _refused(drawn, held)
    if not refused:
        return outcomes
    return [
        ALONE if isinstance(outcome, ScoredEvent) and outcome.agent_id in refused else outcome
        for outcome in outcomes
    ]


def _agent_id(draft: _Draft) -> str:
    return draft.agent.id


def _refused(drafts: Sequence[_Draft], held: Held) -> set[str]:
    """Store the drafts; the agents among whose rows is one that PostgreSQL refuses: theirs are not stored."""
    if not drafts or _store(drafts, held):
        return set()
    if len(drafts) == 1:
        return {drafts[0].agent.id}
    half = len(drafts) // 2
    return _refused(drafts[:half], held) | _refused(drafts[half:], held)


def _refusal(agent: Standing | None, submission: Submission) -> ServiceError | None:
    if agent is None or agent.profile.tenant_id.int != submission.tenant_id.int:
        return AgentNotFound()
    return None if agent.may_report else AgentNotActive()


def _drafts(agents: Iterable[Standing], held: Held, *, now: datetime) -> dict[str, _Draft]:
    """One for each agent that may report and whose memory is at hand, or begins now."""
    able = {agent.id: agent for agent in agents if agent.may_report}
    recalled = _recall(able, held, at=now.timestamp())
    found, lost = {}, {}
    for agent_id, seen in recalled.items():
        state = seen.state
        if state is None:
            lost[agent_id] = able[agent_id].has_limits
        else:
            found[agent_id] = _Draft(able[agent_id], seen, state)
    states = rebuilding.from_snapshots(lost, now=now)
    unknown = [name for name in lost if name not in states and recalled[name].tag == memory.ABSENT]
    states |= {name: AgentState() for name in rebuilding.without_history(unknown, now=now)}
    for agent_id, state in states.items():
        seen = Memory(encode_state(state), recalled[agent_id].tag)
        found[agent_id] = _Draft(able[agent_id], seen, state)
    _lend_baselines(found.values(), now=now)
    return found


def _lend_baselines(drafts: Collection[_Draft], *, now: datetime) -> None:
    """Have each judged beside what its tenant's agents have in common."""
    known = baselines.of_tenants({draft.agent.profile.tenant_id for draft in drafts}, now=now)
    if known:
        for draft in drafts:
            draft.baseline = known.get(draft.agent.profile.tenant_id)


def _recall(agent_ids: Collection[str], held: Held, *, at: float) -> dict[str, Memory]:
    """What the scorer knows of each agent: what this transaction taught it, or what it remembered before."""
    found = {agent_id: held[agent_id] for agent_id in agent_ids if agent_id in held}
    unknown = [agent_id for agent_id in agent_ids if agent_id not in held]
    return {**found, **memory.recall(unknown, at=at)} if unknown else found


def _learn(drafts: Sequence[_Draft], held: Held) -> None:
    """Have the scorer remember what was stored, once it is committed; until then `held` does."""
    lessons = [draft.lesson() for draft in drafts]
    if environments.in_transaction():
        held.update({lesson.agent_id: Memory(lesson.packed, lesson.tag) for lesson in lessons})
    environments.on_commit(partial(memory.remember, lessons), robust=True)


def _draw_up(draft: _Draft, submission: Submission) -> Outcome:
    """The row of an ordinary event; its agent's draft goes no further once one is high."""
    if draft.is_stopped:
        return ALONE
    event = _as_event(submission)
    verdict = fold(draft.state, event, draft.agent.profile.context, draft.baseline)
    if verdict.band == RiskBand.HIGH:
        draft.is_stopped = True
        draft.state = relearn(zip(draft.events, draft.bands(), strict=True), start=draft.seen.state)
        return ALONE
    row = _row(submission, draft.agent, verdict)
    draft.events.append(event)
    draft.rows.append(row)
    return row


def _store(drafts: Sequence[_Draft], held: Held) -> bool:
    """Insert the rows and remember what they taught; False if PostgreSQL refuses one of them."""
    raised = {
        draft.agent.id: worst
        for draft in drafts
        if _is_worse(worst := max([row.risk_score for row in draft.rows]), draft.agent.present_risk)
    }
    rows = [row for draft in drafts for row in draft.rows]
    raising = rolling.raising(raised, now=rows[-1].received_at) if raised else None
    try:
        # What is refused must not be the end of the caller's transaction; without one there is none to save.
        with environments.atomic() if environments.in_transaction() else nullcontext():
            storage.insert(rows, beside=raising)
    except (DataError, IntegrityError):
        return False
    _learn(drafts, held)
    return True


def _is_worse(score: float, present_risk: float) -> bool:
    """Whether an ordinary event is so much worse than its agent's rolling risk that the row is written.

    Risks fade all the time: without a margin, each of an agent's equal events would be worse than the last.
    """
    return score > present_risk + RISK_MARGIN or (
        score > present_risk and band_of(score) != band_of(present_risk)
    )


def _ingest_alone(submission: Submission, held: Held) -> ScoredEvent | ServiceError:
    """Store one event with all that follows from it, in a transaction of its own."""
    agent_id, now = submission.report.agent_id, submission.received_at
    agent = standing.of_agents([agent_id], now=now).get(agent_id)
    refusal = _refusal(agent, submission)
    if refusal is not None or agent is None:
        return refusal or AgentNotFound()
    seen = _recall([agent_id], held, at=now.timestamp())[agent_id]
    state = seen.state or rebuilding.rebuild(agent_id=agent_id, has_limits=agent.has_limits, now=now)
    event = _as_event(submission)
    draft = _Draft(agent, seen, state)
    _lend_baselines([draft], now=now)
    row = _row(submission, agent, fold(state, event, agent.profile.context, draft.baseline))
    draft.events, draft.rows = [event], [row]
    try:
        with environments.atomic():
            _store_alone(row, agent)
    except (DataError, IntegrityError) as error:
        return Invalid(f"The event can't be stored: {type(error).__name__}")
    except ServiceError as error:
        return error
    _learn([draft], held)
    return row


def _store_alone(row: ScoredEvent, agent: Standing) -> None:
    """Insert the event and write what follows from it, inside the caller's transaction."""
    now = row.received_at
    raising = rolling.raising({agent.id: row.risk_score}, now=now)
    if row.risk_band != RiskBand.HIGH:
        storage.insert([row], beside=raising)
        return
    locked = Agent.objects.for_tenant(agent.profile.tenant_id).locked().find(row.agent_id)
    if not standing.of_agents([agent.id], now=now)[agent.id].may_report:
        raise AgentNotActive()
    storage.insert([row], beside=raising)
    threshold.react(agent=locked, event=row, now=now)


def _first_of_each_agent(submissions: Sequence[Submission], indices: Iterable[int]) -> list[int]:
    first: dict[str, int] = {}
    for index in indices:
        first.setdefault(submissions[index].report.agent_id, index)
    return list(first.values())


def _as_event(submission: Submission) -> Event:
    report = submission.report
    return Event(report.action_type, submission.received_at.timestamp(), report.details)


def _row(submission: Submission, agent: Standing, verdict: Verdict) -> ScoredEvent:
    report = submission.report
    return ScoredEvent(
        new_id_at(submission.received_at),
        agent.profile.tenant_text,
        report.agent_id,
        report.action_type,
        verdict.score,
        verdict.band,
        report.occurred_at or submission.received_at,
        submission.received_at,
        report.details,
        report.session_id,
        report.chain_id,
        verdict.reasons,
        verdict.model_version,
    )
