"""Backtest: replay a stream of events through the scorer and measure its verdicts.

A stream is JSON Lines, one event a line in any order: `agent`, `t` (when it was received, RFC 3339),
`action_type` and `details`; optionally `seq` (the run it belongs to), `label_event` and `label_seq` (`attack`
or anything else), and `stage` (`prep` for an attack's first steps, which are scored but not judged).
Agents are one JSON object: by name, `permitted_actions`, `financial_scope`, `home_domain` and `tenant`, all
optional; agents of one tenant share its baseline.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from agents.risk import HIGH
from events.risk.evaluation.policy import is_breach
from events.risk.scoring.comparison import HOUR
from events.risk.scoring.contract import (
    NO_CONTEXT,
    PRIORS,
    Context,
    Event,
    FinancialScope,
    RiskVerdict,
    normal_actions,
)
from events.risk.scoring.model import MODEL_VERSION, fold, teach
from events.risk.scoring.state import DAY, AgentState, Baseline, pool, sum_up_surprises

Numbers = NDArray[np.float64]


def roc_auc(scores: ArrayLike, attacks: ArrayLike) -> float | None:
    """Return the chance that an attack scores above an ordinary event (Mann-Whitney), if there are both."""
    if (counted := _at_each_threshold(scores, attacks)) is None:
        return None
    caught, wrong = counted
    return float(np.trapezoid(np.insert(caught, 0, 0), np.insert(wrong, 0, 0)) / (caught[-1] * wrong[-1]))


def average_precision(scores: ArrayLike, attacks: ArrayLike) -> float | None:
    """Return the mean of precision over recall's steps; None without both kinds."""
    if (counted := _at_each_threshold(scores, attacks)) is None:
        return None
    caught, wrong = counted
    return float(np.sum(np.diff(caught, prepend=0.0) / caught[-1] * caught / (caught + wrong)))


def recall_at_fpr(scores: ArrayLike, attacks: ArrayLike, *, fpr: float) -> float | None:
    """Return the share of attacks above the lowest threshold that at most `fpr` of ordinary events reach."""
    if (counted := _at_each_threshold(scores, attacks)) is None:
        return None
    caught, wrong = counted
    return float(np.max(caught[wrong <= fpr * wrong[-1]], initial=0.0) / caught[-1])


def _at_each_threshold(scores: ArrayLike, attacks: ArrayLike) -> tuple[Numbers, Numbers] | None:
    """Count attacks and ordinary events at or above each distinct score, highest first, if there are both."""
    truth = np.asarray(attacks, dtype=np.float64)
    if truth.size == 0 or truth.min() == truth.max():
        return None
    _, places = np.unique(-np.asarray(scores, dtype=np.float64), return_inverse=True)
    return np.cumsum(np.bincount(places, truth)), np.cumsum(np.bincount(places, 1 - truth))


ATTACK = "attack"
PREPARATION = "prep"
READ = "data_access"
LOW = "low"
STRIKES, STRIKE_WINDOW = 3, timedelta(minutes=15)  # as specified; a file knows of no settings
FEW_FALSE_ALARMS = 0.01  # share of ordinary events at which recall is measured


class StreamUnreadable(ValueError):
    """A stream or an agents' file in another format; the text says where."""


class StreamEvent(msgspec.Struct, frozen=True):
    """A line of a stream, as the module's docstring describes it; `t` without an offset is in UTC."""

    agent: str
    t: datetime
    action_type: str
    details: object = None
    seq: str | None = None
    label_event: str | None = None
    label_seq: str | None = None
    stage: str | None = None

    @property
    def event(self) -> Event:
        return Event(self.action_type, self.received_at.timestamp(), self.details)

    @property
    def received_at(self) -> datetime:
        return self.t if self.t.tzinfo else self.t.replace(tzinfo=UTC)

    @property
    def run(self) -> str:
        return self.agent if self.seq is None else self.seq

    @property
    def is_attack(self) -> bool:
        return self.label_event == ATTACK


class BacktestAgent(msgspec.Struct, frozen=True):
    permitted_actions: list[str] | None = None
    financial_scope: FinancialScope | None = None
    home_domain: str | None = None
    tenant: str | None = None

    @property
    def context(self) -> Context:
        permitted = None if self.permitted_actions is None else normal_actions(self.permitted_actions)
        return Context(permitted, self.financial_scope, self.home_domain)


class Agents(NamedTuple):
    """The agents' contexts and tenants, by the agent's name."""

    contexts: dict[str, Context]
    tenants: dict[str, str]


NOBODY = Agents({}, {})


class Learned(NamedTuple):
    """States by the agent's name, and baselines by tenant."""

    states: dict[str, AgentState]
    baselines: dict[str, Baseline]


NOTHING = Learned({}, {})


class ReplayedEvent(msgspec.Struct, frozen=True):
    row: StreamEvent
    event: Event
    verdict: RiskVerdict


_row = msgspec.json.Decoder(StreamEvent)
_profiles = msgspec.json.Decoder(dict[str, BacktestAgent])


def read_stream(lines: Iterable[bytes]) -> list[StreamEvent]:
    """Return the events of a stream in order of time, blank lines left out. Raises StreamUnreadable."""
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = _row.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise StreamUnreadable(f"line {number}: {error}") from error
        if row.action_type not in PRIORS:
            raise StreamUnreadable(f"line {number}: there is no action type {row.action_type!r}")
        rows.append(row)
    return sorted(rows, key=lambda row: row.event.received_at)


def read_agents(content: bytes) -> Agents:
    """Return the agents of a JSON object, by name. Raises StreamUnreadable."""
    try:
        profiles = _profiles.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StreamUnreadable(f"agents: {error}") from error
    return Agents(
        {name: profile.context for name, profile in profiles.items()},
        {name: profile.tenant for name, profile in profiles.items() if profile.tenant is not None},
    )


def taught(history: Iterable[StreamEvent], agents: Agents = NOBODY, *, before: float) -> Learned:
    """Return what is learned from ordinary `history`, moved by whole days to end before `before`."""
    rows = list(history)
    last = max((row.event.received_at for row in rows), default=before)
    shift = ceil(max(last - before, 0.0) / DAY) * DAY
    states: defaultdict[str, AgentState] = defaultdict(AgentState)
    baselines: defaultdict[str, Baseline] = defaultdict(Baseline)
    for row in rows:
        event = msgspec.structs.replace(row.event, received_at=row.event.received_at - shift)
        baseline = baselines[agents.tenants[row.agent]] if row.agent in agents.tenants else None
        teach(states[row.agent], event, agents.contexts.get(row.agent, NO_CONTEXT), baseline)
        if baseline is not None:
            pool(baseline, event, agent=row.agent, trusted=True)
    _sum_up(baselines, states, agents, before)
    return Learned(states, baselines)


def _sum_up(
    baselines: dict[str, Baseline], states: dict[str, AgentState], agents: Agents, now: float
) -> None:
    own: defaultdict[str | None, list[AgentState]] = defaultdict(list)
    for name, state in states.items():
        own[agents.tenants.get(name)].append(state)
    for tenant, baseline in baselines.items():
        sum_up_surprises(baseline, own[tenant], now)


def scored(
    rows: Iterable[StreamEvent],
    agents: Agents = NOBODY,
    learned: Learned = NOTHING,
    *,
    runs_apart: bool = False,
) -> Iterator[ReplayedEvent]:
    """Yield each row with its verdict, starting from what was `learned`.

    With `runs_apart` every run starts from it anew.
    """
    states: dict[str, AgentState] = {}
    baselines = {tenant: learned.baselines.get(tenant, Baseline()) for tenant in agents.tenants.values()}
    if not runs_apart:
        baselines = {tenant: baseline.changeable() for tenant, baseline in baselines.items()}
    hour = 0
    for row in rows:
        agent, key = row.agent, row.run if runs_apart else row.agent
        if not runs_apart and hour != (hour := int(row.event.received_at // HOUR)):
            _sum_up(baselines, states, agents, row.event.received_at)
        if key not in states:
            states[key] = learned.states[agent].changeable() if agent in learned.states else AgentState()
        baseline = baselines[agents.tenants[agent]] if agent in agents.tenants else None
        event, context = row.event, agents.contexts.get(agent, Context())
        verdict = fold(states[key], event, context, baseline)
        if baseline is not None and not runs_apart and verdict.band == LOW:
            pool(baseline, event, agent=agent)
        yield ReplayedEvent(row, event, verdict)


def report(found: list[ReplayedEvent]) -> dict[str, object]:
    """Return the figures by name; those that need labels are None without them."""
    judged = [one for one in found if one.row.stage != PREPARATION]
    benign = [one.verdict.score >= HIGH for one in judged if not one.row.is_attack]
    labelled = any(one.row.label_event is not None for one in found)
    rightly, wrongly = revoked(found)
    bands = [one.verdict.band for one in found]
    figures: dict[str, object] = {
        "model_version": MODEL_VERSION,
        "events": len(found),
        "attacks": sum(one.row.is_attack for one in judged),
        "agents": len({one.row.agent for one in found}),
        "low": bands.count("low"),
        "medium": bands.count("medium"),
        "high": bands.count("high"),
        **_figures("event", judged),
        **_figures("non_read", [one for one in judged if one.row.action_type != READ]),
        **_sequences(judged),
        "benign_share_high": sum(benign) / len(benign) if labelled and benign else None,
        "agents_revoked": len(rightly) + len(wrongly),
        "agents_revoked_rightly": len(rightly) if labelled else None,
        "agents_revoked_wrongly": len(wrongly) if labelled else None,
    }
    return {name: round(one, 5) if isinstance(one, float) else one for name, one in figures.items()}


def revoked(found: Iterable[ReplayedEvent]) -> tuple[list[str], list[str]]:
    """Return the agents that three high events in fifteen minutes would have stopped, rightly and wrongly.

    Rightly: one of the three, or its run, was an attack.
    """
    highs: defaultdict[str, deque[ReplayedEvent]] = defaultdict(lambda: deque(maxlen=STRIKES))
    stopped: dict[str, bool] = {}
    for one in found:
        agent = one.row.agent
        if agent in stopped or one.verdict.score < HIGH:
            continue
        last = highs[agent]
        last.append(one)
        if is_breach([high.row.received_at for high in last], strikes=STRIKES, window=STRIKE_WINDOW):
            stopped[agent] = any(high.row.is_attack or high.row.label_seq == ATTACK for high in last)
    rightly, wrongly = ([agent for agent in stopped if stopped[agent] is right] for right in (True, False))
    return rightly, wrongly


def _figures(name: str, judged: list[ReplayedEvent]) -> dict[str, object]:
    scores = [one.verdict.score for one in judged]
    attacks = [one.row.is_attack for one in judged]
    return {
        f"{name}_roc_auc": roc_auc(scores, attacks),
        f"{name}_average_precision": average_precision(scores, attacks),
        f"{name}_recall_at_1_percent_fpr": recall_at_fpr(scores, attacks, fpr=FEW_FALSE_ALARMS),
    }


def _sequences(judged: list[ReplayedEvent]) -> dict[str, object]:
    """Measure runs by their worst event; a run is an attack if labelled so, or if one of its events is."""
    worst: dict[str, float] = {}
    attacks: dict[str, bool] = {}
    for one in judged:
        run = one.row.run
        worst[run] = max(worst.get(run, 0.0), one.verdict.score)
        label = one.row.label_event if one.row.label_seq is None else one.row.label_seq
        attacks[run] = attacks.get(run, False) or label == ATTACK
    return {
        "sequences": len(worst),
        "sequence_roc_auc": roc_auc(list(worst.values()), list(attacks.values())),
    }
