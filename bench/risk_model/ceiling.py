"""What a perfect scorer could know from the fields of an event and from its agent's past.

Events that look the same form a group, and no scorer can rank within it. The *bound* gives each group the
best score there is, its own share of attacks. That takes knowing the answers, so beside it stands what the
same groups tell *of others*: each model's events by the shares among the events of all other models.

Three ways to look: `fields`, everything that an event says and how new each of it is; `shape`, without names
of places, resources and amounts; `shape, any tools`, without names of tools too, which no other suite has.
The past holds ordinary events alone, as if every attack had been recognised.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import NamedTuple

from bench.risk_model.figures import LABELLED, Line, decimals
from bench.risk_model.judging import GOALS, in_processes
from bench.risk_model.novelty import places
from bench.risk_model.regimes import WAYS, Part, Stream, Way, model_of
from events.risk.evaluation import metrics
from events.risk.evaluation.backtest import FEW_FALSE_ALARMS, PREPARATION, READ, Agents, StreamEvent
from events.risk.scoring.contract import Context

LOOKS = ("fields", "shape", "shape, any tools")
Figure = Callable[[list[float], list[bool]], float | None]
Item = tuple[str, ...]
"""Something that an event names, its kind first."""


class Seen(NamedTuple):
    """An event as each of `LOOKS` sees it."""

    row: StreamEvent
    looks: tuple[Hashable, ...]


class Ceiling(NamedTuple):
    """By each of `LOOKS`, the bound and by the shares among other models: non-read AUC, recall at 1 %."""

    bound: tuple[float | None, ...]
    of_others: tuple[float | None, ...]
    recall_bound: tuple[float | None, ...]
    recall_of_others: tuple[float | None, ...]


def ceilings(suites: dict[str, Stream]) -> dict[tuple[str, str], Ceiling]:
    """The ceilings of each suite in each way to meet it."""
    asked = [(suite, way) for suite in suites for way in LABELLED]
    calls = [partial(ceiling, suites[suite], WAYS[way]) for suite, way in asked]
    return dict(zip(asked, in_processes(calls), strict=True))


def ceiling(stream: Stream, way: Way) -> Ceiling:
    """The best non-read AUC, and the best recall among all events, that the fields allow."""
    seen = [one for part in way.parts(stream) for one in _seen(part, stream.agents, apart=way.apart)]
    judged = [one for one in seen if one.row.stage != PREPARATION]
    non_read = [one for one in judged if one.row.action_type != READ]
    aucs = _by_look(non_read, metrics.roc_auc)
    recalls = _by_look(judged, partial(metrics.recall_at_fpr, fpr=FEW_FALSE_ALARMS))
    return Ceiling(*aucs, *recalls)


def lines(found: dict[tuple[str, str], Ceiling]) -> list[Line]:
    """For each way and look both ceilings by suite, first of the AUC, then of the recall."""
    suites = list(dict.fromkeys(suite for suite, _ in found))
    result = [["ceilings: bound, of others", *suites]]
    for figure, fields in (("non-read AUC", (0, 1)), ("recall at 1 %", (2, 3))):
        for way in LABELLED:
            for at, look in enumerate(LOOKS):
                met = [found[suite, way] for suite in suites]
                cells = [", ".join(decimals(one[field][at]) for field in fields) for one in met]
                result.append([f"{way}, {figure}: {look}", *cells])
    return result


def _by_look(judged: list[Seen], figure: Figure) -> tuple[tuple[float | None, ...], tuple[float | None, ...]]:
    """The figure by each look, of the bound and of the shares among others."""
    attacks = [one.row.is_attack for one in judged]
    bounds, others = [], []
    for look in range(len(LOOKS)):
        shares, known = _shares(judged, look)
        bounds.append(figure([known[one.looks[look]] for one in judged], attacks))
        others.append(figure([shares[model_of(one.row), one.looks[look]] for one in judged], attacks))
    return tuple(bounds), tuple(others)


def _shares(judged: list[Seen], look: int) -> tuple[dict[tuple[str, Hashable], float], dict[Hashable, float]]:
    """The share of attacks in each group: for each model among all others, and among all.

    A group that no other model has counts as the average event.
    """
    total: defaultdict[Hashable, list[int]] = defaultdict(lambda: [0, 0])
    own: defaultdict[tuple[str, Hashable], list[int]] = defaultdict(lambda: [0, 0])
    for one in judged:
        for counts in (total[one.looks[look]], own[model_of(one.row), one.looks[look]]):
            counts[0] += one.row.is_attack
            counts[1] += 1
    average = sum(one.row.is_attack for one in judged) / len(judged)
    others = {}
    for (model, group), (attacks, events) in own.items():
        left = total[group][1] - events
        others[model, group] = (total[group][0] - attacks + average) / (left + 1)
    return others, {group: attacks / events for group, (attacks, events) in total.items()}


def _seen(part: Part, agents: Agents, *, apart: bool) -> Iterable[Seen]:
    before: defaultdict[str, set[Item]] = defaultdict(set)
    company: set[Item] = set()
    last: dict[str, str] = {}
    for row in part.history:
        before[row.agent] |= (items := _items(row, last.get(row.run, "")))
        company |= items
        last[row.run] = _tool(row)
    during: defaultdict[str, set[Item]] = defaultdict(set)
    read: set[str] = set()
    for row in part.runs:
        met, items = during[row.run if apart else row.agent], _items(row, last.get(row.run, ""))
        new = items - met - before[row.agent]
        yield Seen(row, _looks(row, agents, new, new - company, after_reading=row.run in read))
        last[row.run] = _tool(row)
        if row.action_type == READ:
            read.add(row.run)
        if not row.is_attack:
            met |= items
            company |= set() if apart else items


def _looks(
    row: StreamEvent, agents: Agents, new: set[Item], foreign: set[Item], *, after_reading: bool
) -> tuple[Hashable, ...]:
    home = agents.contexts.get(row.agent, Context()).home_domain or ""
    named, details = places(row, resources=False), _details(row)
    general = (
        row.action_type,
        str(details.get("status")),
        len(named),
        sum(place.endswith(home) for place in named) if home else -1,
        "resource" in details,
        "amount_usd" in details,
        frozenset(item[0] for item in new),
        frozenset(item[0] for item in foreign),
        after_reading,
        frozenset(goal for goal, words in GOALS.items() if not set(words).isdisjoint(_tool(row).split("_"))),
    )
    shape = (*general, _tool(row))
    return (*shape, frozenset(named), str(details.get("resource")), details.get("amount_usd")), shape, general


def _items(row: StreamEvent, last_tool: str) -> set[Item]:
    """What an event names, each of which may be new: places, what it acts on and in what, tools, amounts."""
    details, tool = _details(row), _tool(row)
    resource = str(details.get("resource") or "").casefold()
    amount = details.get("amount_usd")
    found: set[Item] = {("place", place) for place in places(row, resources=False)}
    found |= {("tool", tool), ("pair", last_tool, tool)}
    if resource:
        found |= {("resource", resource), ("holder", resource.rpartition("/")[0])}
    if isinstance(amount, int | float):
        found.add(("amount", str(int(amount).bit_length())))
    return found


def _details(row: StreamEvent) -> dict[str, object]:
    return row.details if isinstance(row.details, dict) else {}


def _tool(row: StreamEvent) -> str:
    return str(_details(row).get("tool", ""))
