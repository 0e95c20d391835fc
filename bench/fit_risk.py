"""`./run bench fit_risk --data DIR`: the scorer's weights from public streams, and how well they carry over.

Weights are learned across suites: each suite counts the same, and the worst of them once more
(`risk_model/fitting.py`). Every suite is judged by weights fitted without it, beside weights
fitted with it and the stored ones.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.harness.report import table as aligned
from bench.risk_model import regimes
from bench.risk_model.figures import decimals
from bench.risk_model.fitting import EVERYTHING, Fits, fits_without, judge_apart, judge_with, labelled
from bench.risk_model.judging import Judgement, Key, Share
from compliance.localdev.console import say
from events.risk.scoring import weights

Judged = dict[Key, Judgement]


def main(arguments: Sequence[str]) -> int:
    """Fit on everything, and without each suite; print the figures and the weights."""
    parser = argparse.ArgumentParser(prog="./run bench fit_risk", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="where the streams are")
    parser.add_argument("--in-sample", action="store_true", help="without leaving suites out")
    parsed = parser.parse_args(arguments)
    streams = regimes.load(parsed.data)
    fits = fits_without(streams, [EVERYTHING, *([] if parsed.in_sample else streams.suites)])
    met = labelled(streams)
    judged = {"stored": judge_with(met, {}), "seen": judge_with(met, fits[EVERYTHING])}
    if not parsed.in_sample:
        judged["left out"] = judge_apart(met, fits)
    say("\n".join([*aligned(_lines(judged)), ""]))
    say("\n".join(aligned(_weight_lines(fits))))
    return 0


def _lines(judged: dict[str, Judged]) -> list[list[str]]:
    """For each stream and way the figures by the stored weights, by those fitted to it, and by the others."""
    columns = [f"{name}: {measure}" for measure in ("non-read AUC", "recall", "medium") for name in judged]
    lines = [["", *columns]]
    for key in next(iter(judged.values())):
        found = [each[key] for each in judged.values()]
        lines.append([
            ", ".join(key),
            *(decimals(each.non_read.auc) for each in found),
            *(decimals(each.all.recall) for each in found),
            *(_shown(each.medium, each.high) for each in found),
        ])  # fmt: skip
    return lines


def _shown(medium: Share, high: Share) -> str:
    """The share of ordinary events at medium, and how many at 0.85 if there are any."""
    shown = f"{100 * (medium.value or 0.0):.1f} %"
    return f"{shown}, {high.part} high" if high.part else shown


def _weight_lines(fits: Fits) -> list[list[str]]:
    named = {name or "everything": fit for name, fit in fits.items()}
    lines = [["weights", "stored", *(name if name == "everything" else f"without {name}" for name in named)]]
    for name in fits[EVERYTHING]:
        found = [getattr(weights, name), *(fit[name] for fit in named.values())]
        lines.append([name, *(f"{weight:.2f}" for weight in found)])
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
