"""`./run bench fit_risk --data DIR`: the scorer's weights from public streams, and how well they carry over.

Coordinate ascent from equal weights: what is learned depends on what is scored low, so every trial replays
the streams. Weights stay above zero. `--held-out` judges each fit on what it has not seen.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.risk_model import regimes
from bench.risk_model.regimes import Part, Streams
from compliance.localdev.console import say
from events.risk.evaluation.backtest import NOBODY, Agents, ReplayedEvent, StreamEvent, report
from events.risk.scoring import weights

FITTED = (
    "NEW_DESTINATION",
    "READ_THEN_SEND",
    "NEW_HOST",
    "EXTERNAL_HOST",
    "UNUSUAL_TOOL",
    "UNUSUAL_SEQUENCE",
    "NEW_RESOURCE",
    "UNUSUAL_AMOUNT",
    "TOKEN_AMOUNT",
)
START = 0.5
STEPS = (2.0, 1.3)
PASSES = 2
LEAST = 0.02
MOST_MEDIUM = 0.02
"""Share of ordinary events at medium or above beyond which a fit pays for them."""
PRICE = 5.0
WORTH_MOVING = 3e-3
"""The least gain that moves a weight: less is noise of the few attacks that there are."""
PARTS = 3
Figures = dict[str, Any]
Kept = Callable[[StreamEvent], bool]
Ready = dict[str, tuple[list[Part], Agents, bool]]


def main(arguments: Sequence[str]) -> int:
    """Fit on everything and on parts; print the weights and the figures."""
    parser = argparse.ArgumentParser(prog="./run bench fit_risk", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="where the streams are")
    parser.add_argument("--held-out", choices=["none", "tasks", "suites"], default="none")
    parsed = parser.parse_args(arguments)
    streams = regimes.load(parsed.data)
    if parsed.held_out == "none":
        fit(streams)
        say(f"  seen: {_shown(measure(prepared(streams)))}")
        for name in FITTED:
            say(f"{name} = {getattr(weights, name):.2f}")
        return 0
    for name, is_left_out in _parts(parsed.held_out):
        fit(_only(streams, partial(_is_not, is_left_out)))
        say(f"  {name} left out: {_shown(measure(prepared(_only(streams, is_left_out))))}")
        say("    " + " ".join(f"{name}={getattr(weights, name):.2f}" for name in FITTED))
    return 0


def fit(streams: Streams) -> None:
    """Set the weights to what serves these streams best."""
    for name in FITTED:
        setattr(weights, name, START)
    ready = prepared(streams)
    best = worth(measure(ready))
    for step in STEPS:
        for name in FITTED * PASSES:
            best = _improve(name, step, ready, best)


def _improve(name: str, step: float, ready: Ready, best: float) -> float:
    present = getattr(weights, name)
    for candidate in (present * step, max(present / step, LEAST)):
        setattr(weights, name, candidate)
        found = worth(measure(ready))
        if found > best + WORTH_MOVING:
            return found
    setattr(weights, name, present)
    return best


def measure(ready: Ready) -> dict[str, Figures]:
    """The figures of each way to meet the streams."""
    return {
        name: _figures(regimes.judged(parts, agents, apart=apart))
        for name, (parts, agents, apart) in ready.items()
    }


def prepared(streams: Streams) -> Ready:
    """What each way starts from, worked out once: history is learned whatever the weights are."""
    tasks, agents = streams.tasks, streams.task_agents
    return {
        "cold": (regimes.cold(tasks), agents, False),
        "unseen task": (regimes.unseen_task(tasks, agents), agents, True),
        "mature": (regimes.mature(tasks, agents), agents, True),
        "payments": (regimes.cold(streams.payments), NOBODY, False),
    }


def _figures(found: list[ReplayedEvent]) -> Figures:
    benign = [one for one in found if not one.row.is_attack]
    medium = sum(one.verdict.band != "low" for one in benign) / len(benign)
    return report(found) | {"benign_share_medium": medium}


def worth(figures: dict[str, Figures]) -> float:
    """What a fit is judged by: ranking of what isn't read, the top of the list, few ordinary events flagged.

    Each way to meet the streams counts the same.
    """
    total = 0.0
    for each in figures.values():
        total += each["non_read_roc_auc"] + each["event_average_precision"] / 2
        total -= PRICE * max(each["benign_share_medium"] - MOST_MEDIUM, 0.0)
    return total


def _parts(held_out: str) -> list[tuple[str, Kept]]:
    if held_out == "suites":
        return [(suite, partial(_is_of_suite, suite)) for suite in ("banking", "workspace")]
    return [(f"part {part}", partial(_is_of_part, part)) for part in range(PARTS)]


def _is_of_suite(suite: str, row: StreamEvent) -> bool:
    return f"|{suite}|" in row.run


def _is_of_part(part: int, row: StreamEvent) -> bool:
    return _number(row) % PARTS == part


def _is_not(kept: Kept, row: StreamEvent) -> bool:
    return not kept(row)


def _number(row: StreamEvent) -> int:
    """The number of the task, or of the payer."""
    words = row.run.split("|")
    return int((words[2] if len(words) > 2 else words[0])[1:])


def _only(streams: Streams, kept: Kept) -> Streams:
    payments = [row for row in streams.payments if kept(row)] or streams.payments
    return streams._replace(tasks=[row for row in streams.tasks if kept(row)], payments=payments)


def _shown(figures: dict[str, Figures]) -> str:
    return "; ".join(
        f"{name}: non-read AUC {each['non_read_roc_auc']:.3f}, AP {each['event_average_precision']:.3f},"
        f" recall at 1 % {each['event_recall_at_1_percent_fpr']:.3f},"
        f" ordinary at 0.30 {100 * each['benign_share_medium']:.1f} %,"
        f" at 0.85 {100 * each['benign_share_high']:.2f} %"
        for name, each in figures.items()
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
