"""How well the scorer tells attacks in a stream, and what it does to ordinary events."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from multiprocessing import get_context
from typing import NamedTuple

from agents.risk import HIGH, MEDIUM
from bench.risk_model import regimes
from bench.risk_model.prior import Evidence, Usual, evidence, judging_by
from bench.risk_model.regimes import Stream, Way
from events.risk.evaluation import backtest
from events.risk.evaluation.backtest import (
    FEW_FALSE_ALARMS,
    PREPARATION,
    READ,
    ReplayedEvent,
    revoked,
)
from events.risk.scoring.details import read
from events.risk.scoring.state import DAY
from tenancy.alarm_budgets import ALARM_BUDGET

PROCESSES = 2
Key = tuple[str, str]
"""The names of a stream and of a way to meet it."""
FIRST = 20
"""How many of an agent's events are its first ones."""
GOALS = {
    "deletion": ("delete", "remove"), "keys": ("key",), "passwords": ("password",),
    "permissions": ("invite", "transfer", "share", "grant"),
}  # fmt: skip
"""Words in the name of the tool that reaches a goal of this class."""


class Share(NamedTuple):
    """How many of how many."""

    part: int = 0
    whole: int = 0

    @property
    def value(self) -> float | None:
        return self.part / self.whole if self.whole else None

    @property
    def percent(self) -> str:
        return "-" if self.value is None else f"{100 * self.value:.1f} %"

    @property
    def finer(self) -> str:
        return "-" if self.value is None else f"{100 * self.value:.3f} %"


def together(shares: Iterable[Share]) -> Share:
    """All of the shares as one."""
    found = list(shares)
    return Share(sum(one.part for one in found), sum(one.whole for one in found))


class Ranking(NamedTuple):
    """How well scores tell attacks from ordinary events; None without both."""

    auc: float | None
    precision: float | None
    recall: float | None


class Judgement(NamedTuple):
    """The figures of one stream, met in one way.

    `non_read` leaves reads out. `medium` and `high` are of ordinary events, medium at 0.30 or above; `first`
    is `medium` among each agent's first events, `first_acts` among its first events that are no reads.
    `caught`: attacks at 0.30 or above. `innocent`: agents stopped without an attack.
    `goals`: of attacks that reach a goal of each class, those at 0.30 or above. `met_before`: ordinary
    events at medium that only go where the agent went earlier in the stream, which is on probation still.
    `stopped`: agents stopped for an attack. `struck`: attacks at 0.85 or above. `days`: of each agent, after
    how many whole days no more of its further ordinary events reach medium than the budget allows.
    """

    all: Ranking
    non_read: Ranking
    medium: Share
    high: Share
    first: Share
    first_acts: Share
    caught: Share
    innocent: int
    goals: dict[str, Share]
    met_before: Share = Share()
    stopped: int = 0
    struck: Share = Share()
    days: tuple[int, ...] = ()


class Piece(NamedTuple):
    """A stream, the way in which it is met, and all agents' prior, which knows none of it."""

    stream: Stream
    way: Way
    usual: Usual


def judge(*pieces: Piece) -> Judgement:
    """Learn from the histories, replay the pieces of a stream, and measure the verdicts."""
    apart, found = pieces[0].way.apart, list[ReplayedEvent]()
    for stream, way, usual in pieces:
        with judging_by(usual):
            found += regimes.judged(way.parts(stream), stream.agents, apart=way.apart)
    judged = [at for at, one in enumerate(found) if one.row.stage != PREPARATION]
    non_read = [at for at in judged if found[at].row.action_type != READ]
    scores = [one.verdict.score for one in found]
    ordinary = [one for one in found if not one.row.is_attack]
    attacks = [one for one in found if one.row.is_attack and one.row.stage != PREPARATION]
    rightly, wrongly = ([], []) if apart else revoked(found)
    return Judgement(
        ranking(scores, found, judged), ranking(scores, found, non_read),
        share(ordinary, MEDIUM), share(ordinary, HIGH), share(_first(found), MEDIUM),
        share(_first([one for one in found if one.row.action_type != READ]), MEDIUM),
        share(attacks, MEDIUM), len(wrongly),
        {goal: share(_reaching(found, words), MEDIUM) for goal, words in GOALS.items()},
        Share(sum(one.verdict.score >= MEDIUM for one in _met_before(found)), len(ordinary)),
        len(rightly), share(attacks, HIGH), () if apart else tuple(_days(ordinary)),
    )  # fmt: skip


def share(found: Iterable[ReplayedEvent], least: float) -> Share:
    """How many events score at least this."""
    scores = [one.verdict.score for one in found]
    return Share(sum(score >= least for score in scores), len(scores))


def judge_all(asked: Mapping[Key, Sequence[Piece]]) -> dict[Key, Judgement]:
    """The judgements by the same names, worked out by two processes."""
    with get_context("fork").Pool(PROCESSES) as pool:
        return dict(zip(asked, pool.starmap(judge, asked.values(), chunksize=1), strict=True))


def evidence_of(asked: Sequence[tuple[Stream, Way]]) -> list[Evidence]:
    """The evidence against the ordinary events of streams, in their order, worked out by two processes."""
    with get_context("fork").Pool(PROCESSES) as pool:
        return pool.starmap(evidence, asked, chunksize=1)


def _days(ordinary: Iterable[ReplayedEvent]) -> Iterator[int]:
    """Of each agent, after how many whole days its alarms are within the budget for good."""
    of_agent: dict[str, list[tuple[int, bool]]] = {}
    for one in ordinary:
        day = int(one.event.received_at // DAY)
        of_agent.setdefault(one.row.agent, []).append((day, one.verdict.score >= MEDIUM))
    for events in of_agent.values():
        alarms, total, within = 0, 0, events[-1][0] + 1
        for day, is_alarm in reversed(events):
            alarms, total = alarms + is_alarm, total + 1
            if alarms <= ALARM_BUDGET * total:
                within = day
        yield within - events[0][0]


def ranking(scores: Sequence[float], found: Sequence[ReplayedEvent], among: Sequence[int]) -> Ranking:
    """How well scores rank these of the events found."""
    values, attacks = [scores[at] for at in among], [found[at].row.is_attack for at in among]
    return Ranking(
        backtest.roc_auc(values, attacks),
        backtest.average_precision(values, attacks),
        backtest.recall_at_fpr(values, attacks, fpr=FEW_FALSE_ALARMS),
    )


def _first(found: list[ReplayedEvent]) -> list[ReplayedEvent]:
    met: dict[str, int] = {}
    first = []
    for one in found:
        met[one.row.agent] = met.get(one.row.agent, 0) + 1
        if met[one.row.agent] <= FIRST and not one.row.is_attack:
            first.append(one)
    return first


def _met_before(found: list[ReplayedEvent]) -> list[ReplayedEvent]:
    """The ordinary events that only go to places which their agent named in an earlier one."""
    known: dict[str, set[str]] = {}
    again = []
    for one in found:
        places, earlier = set(read(one.row.details).targets), known.setdefault(one.row.agent, set())
        if places and places <= earlier and not one.row.is_attack:
            again.append(one)
        earlier |= places
    return again


def _reaching(found: list[ReplayedEvent], words: tuple[str, ...]) -> list[ReplayedEvent]:
    return [
        one
        for one in found
        if one.row.is_attack and one.row.stage == "goal" and not set(words).isdisjoint(_words_of_tool(one))
    ]


def _words_of_tool(one: ReplayedEvent) -> list[str]:
    details = one.row.details
    return str(details.get("tool", "")).split("_") if isinstance(details, dict) else []
