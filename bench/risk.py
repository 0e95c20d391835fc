"""`./run bench risk --data DIR`: how well the scorer tells attacks in public streams.

Each suite is met in several ways (`risk_model/regimes.py`), with all agents' prior fitted to the others
(`risk_model/prior.py`).
`risk_model/judging.py` defines the figures.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.harness.report import table as aligned
from bench.risk_model import figures, regimes
from bench.risk_model.judging import judge_all
from compliance.localdev.console import say


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="./run bench risk", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="where the streams are")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures for programs too")
    parsed = parser.parse_args(arguments)
    judged = judge_all(figures.asked(regimes.load(parsed.data)))
    for table in (figures.by_suite, figures.goals, figures.others, figures.ordinary, figures.budget):
        say("\n".join([*aligned(table(judged)), ""]))
    if parsed.json:
        found = {", ".join(key): one._asdict() for key, one in judged.items()}
        parsed.json.write_text(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
