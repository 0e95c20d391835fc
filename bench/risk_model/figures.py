"""The table of what the scorer shows on the open streams, suite by suite, beside what it should show."""

from collections.abc import Callable, Mapping

from bench.risk_model.judging import GOALS, Judgement, Key, Piece, Share, evidence_of, together
from bench.risk_model.prior import Evidence, fitted
from bench.risk_model.regimes import WAYS, Stream, Streams, Way
from events.risk.evaluation.backtest import NOBODY

Judged = Mapping[Key, Judgement]
Line = list[str]
UNSEEN, MATURE, COLD, ONE_STREAM = "unseen task", "mature", "cold", "mature, one stream"
LABELLED = (UNSEEN, MATURE, COLD)
AIMS = {
    UNSEEN: "mean ≥ .94, worst ≥ .85",
    MATURE: "mean ≥ .96, worst ≥ .90",
    COLD: "mean ≥ .82",
}
PAYMENTS, TOOLS, NO_SCOPE, REAL_TIME = "payments", "tools", "tools, no scope", "real time"


def asked(streams: Streams) -> dict[Key, list[Piece]]:
    """What is judged: each stream by name, in each way that it is met, by a prior that knows none of it.

    Payments are judged by that of the other half of the agents.
    """
    halves = [f"{PAYMENTS} {half}" for half in range(2)]
    known = [(name, stream, WAYS[way]) for name, stream in streams.suites.items() for way in LABELLED]
    known += [(name, half, WAYS[COLD]) for name, half in zip(halves, _halves(streams.payments), strict=True)]
    known.append((REAL_TIME, streams.real_time, WAYS[COLD]))
    found: dict[str, list[Evidence]] = {}
    collected = evidence_of([(stream, way) for _, stream, way in known])
    for (name, _, _), one in zip(known, collected, strict=True):
        found.setdefault(name, []).append(one)

    def pieces(name: str, stream: Stream, way: Way) -> list[Piece]:
        if name == PAYMENTS:
            parts = zip(_halves(stream), halves, strict=True)
            return [Piece(part, way, fitted(found, [half])) for part, half in parts]
        return [Piece(stream, way, fitted(found, [name.removesuffix(_verbatim(""))]))]

    suites = {name: streams.suites[name] for name in streams.suites}
    told = {_verbatim(name): stream for name, stream in streams.verbatim.items()}
    others = {
        PAYMENTS: streams.payments, TOOLS: streams.tools, NO_SCOPE: Stream(streams.tools.rows, NOBODY),
        REAL_TIME: streams.real_time,
    }  # fmt: skip
    ways = [
        *((name, stream, way) for name, stream in (suites | told).items() for way in (*LABELLED, ONE_STREAM)),
        *((name, stream, COLD) for name, stream in others.items()),
    ]
    return {(name, way): pieces(name, stream, WAYS[way]) for name, stream, way in ways}


def _halves(stream: Stream) -> list[Stream]:
    """The stream of every second agent, and that of the others."""
    agents = sorted({row.agent for row in stream.rows})
    return [
        Stream([row for row in stream.rows if row.agent in half], stream.agents)
        for half in (set(agents[::2]), set(agents[1::2]))
    ]


def suites_of(judged: Judged) -> list[str]:
    """The suites in our own vocabulary, in the order they were judged in."""
    return [name for name, way in judged if way == UNSEEN and not name.endswith(_verbatim(""))]


def by_suite(judged: Judged) -> list[Line]:
    """Ranking and goals, for each suite, their mean and the worst."""
    suites = suites_of(judged)

    def line(name: str, figure: Callable[[str], float | None], aim: str = "") -> Line:
        figures = [figure(suite) for suite in suites]
        known = [each for each in figures if each is not None]
        mean, worst = (sum(known) / len(known), min(known)) if known else (None, None)
        return [name, *map(decimals, (*figures, mean, worst)), aim]

    def of(way: str, figure: Callable[[Judgement], float | None]) -> Callable[[str], float | None]:
        return lambda suite: figure(judged[suite, way]) if (suite, way) in judged else None

    def verbatim(way: str, figure: Callable[[Judgement], float | None]) -> Callable[[str], float | None]:
        return lambda suite: of(way, figure)(_verbatim(suite))

    return [
        ["", *suites, "mean", "worst", "aim"],
        *(line(f"{way}: non-read AUC", of(way, _auc), AIMS[way]) for way in LABELLED),
        *(line(f"{way}: recall at 1 %", of(way, _recall), "≥ .50" * (way == UNSEEN)) for way in LABELLED),
        *(line(f"{way}: non-read recall at 1 %", of(way, _non_read_recall)) for way in LABELLED),
        *(line(f"{way}: AP", of(way, _precision)) for way in LABELLED),
        *(line(f"{way}: verbatim, non-read AUC", verbatim(way, _auc), "within .02") for way in LABELLED),
    ]


def goals(judged: Judged) -> list[Line]:
    """How many attacks of each class reach medium when the agent is mature, by suite."""
    lines = [["mature, attacks at medium", *GOALS, "all"]]
    for (suite, way), each in judged.items():
        if way == MATURE and any(share.whole for share in each.goals.values()):
            lines.append([suite, *map(_count, (*each.goals.values(), together(each.goals.values())))])
    return lines


def budget(judged: Judged) -> list[Line]:
    """What the default alarm budget comes to: alarms and stops for nothing and for attacks, and how soon."""
    heads = [
        "budget of 1 %",
        "ordinary",
        "at 0.85",
        "attacks",
        "at 0.85",
        "stopped",
        "wrongly",
        "days",
    ]
    lines = [heads]
    for (name, way), each in judged.items():
        days = sorted(each.days) if way == COLD else []
        told = f"{days[len(days) // 2]}, nine in ten {days[len(days) * 9 // 10]}" if days else ""
        lines.append([
            *(f"{name}, {way}", each.medium.percent, each.high.finer),
            *(each.caught.percent, each.struck.percent, str(each.stopped), str(each.innocent), told),
        ])  # fmt: skip
    return lines


OF_THE_YOUNG = ("first", "first_acts", "met_before")
"""What of a judgement concerns agents without a past."""


def ordinary(judged: Judged) -> list[Line]:
    """What happens to ordinary events and innocent agents, for each stream and way, and over all."""
    heads = ["ordinary events", "at medium", "first 20", "first 20 acts", "where it went before"]
    lines = [[*heads, "at 0.85", "innocent stopped"]]
    for (name, way), each in judged.items():
        first = [getattr(each, field).percent if way == COLD else "" for field in OF_THE_YOUNG]
        lines.append([f"{name}, {way}", each.medium.percent, *first, _count(each.high), str(each.innocent)])
    high, innocent = together(each.high for each in judged.values()), sum(e.innocent for e in judged.values())
    return [*lines, ["all", *[""] * 4, _count(high), str(innocent)], *_means(judged)]


def others(judged: Judged) -> list[Line]:
    """Ranking of the streams that are no suites."""
    return [
        ["", "AUC", "AP", "recall at 1 %", "aim"],
        *(
            [name, *map(decimals, judged[name, COLD].all), "AUC ≥ .862, AP ≥ .678" * (name == PAYMENTS)]
            for name in (PAYMENTS, TOOLS, NO_SCOPE)
        ),
    ]


def decimals(figure: float | None) -> str:
    """Three decimals, or a dash."""
    return "-" if figure is None else f"{figure:.3f}"


def _means(judged: Judged) -> list[Line]:
    """The shares at medium over all suites at once, by way."""
    lines = []
    for way, aim in ((MATURE, "≤ 1.5 %"), (UNSEEN, ""), (COLD, "≤ 4 %, first ≤ 3 %")):
        met = [judged[suite, way] for suite in suites_of(judged)]
        first = OF_THE_YOUNG if way == COLD else ()
        shares = [together(getattr(each, field) for each in met).percent for field in ("medium", *first)]
        lines.append([f"suites, {way}", *shares, *[""] * (5 - len(shares)), aim])
    return lines


def _verbatim(name: str) -> str:
    return f"{name} verbatim"


def _auc(each: Judgement) -> float | None:
    return each.non_read.auc


def _recall(each: Judgement) -> float | None:
    return each.all.recall


def _non_read_recall(each: Judgement) -> float | None:
    return each.non_read.recall


def _precision(each: Judgement) -> float | None:
    return each.all.precision


def _count(share: Share) -> str:
    return f"{share.part} of {share.whole}" if share.whole else "-"
