"""What the scorer would have said of a stream of events, and how far it would have been right.

A stream is JSON Lines, one event a line in any order: `agent`, `t` (when it was received, RFC 3339),
`action_type` and `details`; optionally `seq` (the run it belongs to), `label_event` and `label_seq` (`attack`
or anything else), and `stage` (`prep` for what an attack does before its goal: scored, but not judged).
Agents are one JSON object: by name, `permitted_actions`, `financial_scope`, `home_domain`, all optional.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from math import ceil

import msgspec

from agents.risk import HIGH
from events.scoring import metrics
from events.scoring.contract import Context, Event, FinancialScope, Verdict, normal_actions
from events.scoring.model import MODEL_VERSION, fold, teach
from events.scoring.priors import PRIORS
from events.scoring.state import DAY, AgentState

ATTACK = "attack"
PREPARATION = "prep"
READ = "data_access"
STRIKES = 3
STRIKE_SECONDS = 15 * 60
FEW_FALSE_ALARMS = 0.01


class StreamUnreadable(ValueError):
    """A stream or an agents' file that is not in the format; says where."""


class Row(msgspec.Struct, frozen=True):
    """One line of a stream."""

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
        at = self.t if self.t.tzinfo else self.t.replace(tzinfo=UTC)
        return Event(self.action_type, at.timestamp(), self.details)

    @property
    def run(self) -> str:
        return self.agent if self.seq is None else self.seq

    @property
    def is_attack(self) -> bool:
        return self.label_event == ATTACK


class Profile(msgspec.Struct, frozen=True):
    """What the agents' file says of one agent."""

    permitted_actions: list[str] | None = None
    financial_scope: FinancialScope | None = None
    home_domain: str | None = None

    @property
    def context(self) -> Context:
        permitted = None if self.permitted_actions is None else normal_actions(self.permitted_actions)
        return Context(permitted, self.financial_scope, self.home_domain)


class Scored(msgspec.Struct, frozen=True):
    """A row and what the scorer says of it."""

    row: Row
    event: Event
    verdict: Verdict


_row = msgspec.json.Decoder(Row)
_profiles = msgspec.json.Decoder(dict[str, Profile])


def read_stream(lines: Iterable[bytes]) -> list[Row]:
    """The rows of a stream, oldest first."""
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


def read_agents(content: bytes) -> dict[str, Context]:
    """The context of each agent in an agents' file."""
    try:
        return {name: profile.context for name, profile in _profiles.decode(content).items()}
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StreamUnreadable(f"agents: {error}") from error


def taught(history: Iterable[Row], *, before: float) -> dict[str, AgentState]:
    """The states of the agents after `history`, which is known to be ordinary and moved to before `before`.

    Moved by whole days, so that hours stay what they were.
    """
    rows = list(history)
    last = max((row.event.received_at for row in rows), default=before)
    shift = ceil(max(last - before, 0.0) / DAY) * DAY
    states: defaultdict[str, AgentState] = defaultdict(AgentState)
    for row in rows:
        event = msgspec.structs.replace(row.event, received_at=row.event.received_at - shift)
        teach(states[row.agent], event)
    return states


def scored(
    rows: Iterable[Row],
    contexts: dict[str, Context],
    states: dict[str, AgentState] | None = None,
    *,
    runs_apart: bool = False,
) -> Iterator[Scored]:
    """Each row's verdict, one agent's going on from another, starting from `states`.

    With `runs_apart` every run starts from `states` afresh, as if no other had been seen.
    """
    start = states or {}
    now: dict[str, AgentState] = {}
    nothing = Context()
    for row in rows:
        key = row.run if runs_apart else row.agent
        if key not in now:
            now[key] = start[row.agent].changeable() if row.agent in start else AgentState()
        event = row.event
        yield Scored(row, event, fold(now[key], event, contexts.get(row.agent, nothing)))


def report(found: list[Scored]) -> dict[str, object]:
    """The figures: flat, by name; those that need labels are None without them."""
    judged = [one for one in found if one.row.stage != PREPARATION]
    labelled = any(one.row.label_event is not None for one in found)
    rightly, wrongly = revoked(found)
    bands = [one.verdict.band for one in found]
    return {
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
        "benign_share_high": _share_high(judged) if labelled else None,
        "agents_revoked": len(rightly) + len(wrongly),
        "agents_revoked_rightly": len(rightly) if labelled else None,
        "agents_revoked_wrongly": len(wrongly) if labelled else None,
    }


def revoked(found: Iterable[Scored]) -> tuple[list[str], list[str]]:
    """The agents that three high events within fifteen minutes would have stopped, rightly and wrongly.

    Rightly where one of the three was an attack, or the event's run was one.
    """
    highs: defaultdict[str, deque[Scored]] = defaultdict(lambda: deque(maxlen=STRIKES))
    stopped: dict[str, bool] = {}
    for one in found:
        agent = one.row.agent
        if agent in stopped or one.verdict.score < HIGH:
            continue
        last = highs[agent]
        last.append(one)
        if len(last) == STRIKES and one.event.received_at - last[0].event.received_at <= STRIKE_SECONDS:
            stopped[agent] = any(high.row.is_attack or high.row.label_seq == ATTACK for high in last)
    return (
        [agent for agent, rightly in stopped.items() if rightly],
        [agent for agent, rightly in stopped.items() if not rightly],
    )


def _figures(name: str, judged: list[Scored]) -> dict[str, object]:
    scores = [one.verdict.score for one in judged]
    attacks = [one.row.is_attack for one in judged]
    return {
        f"{name}_roc_auc": _rounded(metrics.roc_auc(scores, attacks)),
        f"{name}_average_precision": _rounded(metrics.average_precision(scores, attacks)),
        f"{name}_recall_at_1_percent_fpr": _rounded(
            metrics.recall_at_fpr(scores, attacks, fpr=FEW_FALSE_ALARMS)
        ),
    }


def _sequences(judged: list[Scored]) -> dict[str, object]:
    """Runs by their worst event; a run is an attack if labelled so, or if one of its events is."""
    worst: dict[str, float] = {}
    attacks: dict[str, bool] = {}
    for one in judged:
        run = one.row.run
        worst[run] = max(worst.get(run, 0.0), one.verdict.score)
        labelled = one.row.label_seq
        attacks[run] = attacks.get(run, False) or (
            one.row.is_attack if labelled is None else labelled == ATTACK
        )
    runs = list(worst)
    return {
        "sequences": len(runs),
        "sequence_roc_auc": _rounded(
            metrics.roc_auc([worst[run] for run in runs], [attacks[run] for run in runs])
        ),
    }


def _share_high(judged: list[Scored]) -> float | None:
    """The share of events that were no attacks and yet high."""
    benign = [one for one in judged if not one.row.is_attack]
    return _rounded(sum(one.verdict.score >= HIGH for one in benign) / len(benign)) if benign else None


def _rounded(figure: float | None) -> float | None:
    return None if figure is None else round(figure, 5)
