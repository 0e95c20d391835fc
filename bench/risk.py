"""`./run bench risk --data DIR`: how well the scorer tells attacks, and what an event costs.

Each suite is met in several ways (`risk_model/regimes.py`) and held against a plain rule, the novelty of the
destination (`risk_model/novelty.py`), and against what its fields can tell (`risk_model/ceiling.py`).
Simulated agents are attacked, and live ordinary lives. `risk_model/judging.py` defines the figures.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.harness.report import table as aligned
from bench.risk_model import (
    attackers,
    beside_peers,
    ceiling,
    figures,
    fitting,
    lives,
    own_weights,
    regimes,
    timing,
    verdict_ceiling,
    verdicts,
)
from bench.risk_model.figures import COLD, PAYMENTS, Judged, Line
from bench.risk_model.judging import judge_all
from compliance.localdev.console import say

TABLES: tuple[Callable[[Judged], list[Line]], ...] = (
    figures.by_suite, figures.goals, figures.others, figures.ordinary,
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="./run bench risk", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="where the streams are")
    parser.add_argument("--only", metavar="A,B", help=f"some of {', '.join(SECTIONS)}")
    parser.add_argument(
        "--split", choices=["suites"], help="instead of sections: each suite by weights fitted to the others"
    )
    parser.add_argument("--peers", action="store_true", help="with HalfSpaceTrees and IsolationForest")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures for programs too")
    parsed = parser.parse_args(arguments)
    sections = parsed.only.split(",") if parsed.only else list(SECTIONS)
    if unknown := set(sections) - set(SECTIONS):
        parser.error(f"there is no section {', '.join(sorted(unknown))}")
    if parsed.split:
        found = {"left out": _split(parsed.data)}
    else:
        found = {name: SECTIONS[name](parsed.data) for name in sections}
    if parsed.peers:
        _beside_peers(parsed.data)
    if parsed.json:
        parsed.json.write_text(json.dumps(found, indent=2))
    return 0


def _figures(data: Path) -> object:
    return _shown(judge_all(figures.asked(regimes.load(data))), TABLES)


def _split(data: Path) -> object:
    """The same tables of the labelled streams, each suite scored by weights that never saw it."""
    streams = regimes.load(data)
    fits = fitting.fits_without(streams, [*streams.suites, fitting.EVERYTHING])
    return _shown(fitting.judge_apart(fitting.labelled(streams), fits), (*TABLES[:2], figures.ordinary))


def _shown(judged: Judged, tables: Iterable[Callable[[Judged], list[Line]]]) -> object:
    for lines in tables:
        _print(lines(judged))
    below = figures.below_the_rule(judged)
    say("\n".join([*(below or ["nowhere below the novelty of the destination"]), ""]))
    return _named(judged)


def _ceiling(data: Path) -> object:
    suites = regimes.load(data).suites
    found = ceiling.ceilings(suites)
    _print(ceiling.lines(found))
    fitted = own_weights.fits(suites)
    _print(own_weights.lines(fitted))
    goals = fitting.price_of_goals(regimes.load(data))
    _print(goals)
    return {
        "of the fields": _named(found),
        "of the differences": {", ".join(key): one._asdict() for key, one in fitted.items()},
        "price of goals": goals,
    }


def _attackers(_: Path) -> object:
    outcomes = attackers.outcomes()
    found = [attackers.lines(outcomes), attackers.missed_lines(outcomes)]
    for table in found:
        _print(table)
    return found


def _lives(_: Path) -> object:
    found = lives.outcomes()
    _print(lives.lines(found))
    return _named(found)


def _verdicts(data: Path) -> object:
    payments = regimes.load(data).payments
    found = verdicts.compared(payments)
    _print(verdicts.lines(found))
    replays = (verdicts.replayed(payments, delay=delay) for delay in (verdicts.NEVER, verdicts.WEEK))
    bound = verdict_ceiling.ceiling(*replays, delay=verdicts.WEEK)
    _print(verdict_ceiling.lines(bound))
    return {**{name: one._asdict() for name, one in found.items()}, "fitted": bound._asdict()}


def _time(data: Path) -> object:
    found = timing.measured(data)
    _print(timing.lines(found))
    return _named(found)


SECTIONS: dict[str, Callable[[Path], object]] = {
    "figures": _figures,
    "ceiling": _ceiling,
    "verdicts": _verdicts,
    "attackers": _attackers,
    "lives": _lives,
    "time": _time,
}


def _beside_peers(data: Path) -> None:
    streams = regimes.load(data)
    asked = figures.asked(streams)
    tables = beside_peers.tables_of(asked)
    _print(beside_peers.figures(tables, judge_all({key: asked[key] for key in tables})))
    _print(beside_peers.costs(tables[PAYMENTS, COLD], streams.payments))


def _named(found: Mapping[tuple[str, str], Any]) -> dict[str, object]:
    return {", ".join(key): one._asdict() for key, one in found.items()}


def _print(lines: list[Line]) -> None:
    say("\n".join([*aligned(lines), ""]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
