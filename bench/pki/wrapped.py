"""Wrapped agents' keys beside resident ones: signatures, and the start of a process, with many agents."""

import sys
from statistics import median

from bench.harness.report import number
from bench.pki.lists import ask
from bench.pki.run import PkiRun
from compliance.localdev.console import step

SAMPLES = 3_000
TURNS = 3
CHILD = [sys.executable, "-m", "bench.pki.wrapped_child"]


def store_records(run: PkiRun) -> None:
    """Make the wrapping key and records of wrapped keys, unless they are there."""
    with step(f"{run.options.agents:,} records of wrapped keys"):
        ask(run.place, [*CHILD, "fill", str(run.options.agents)], {}, None)


def wrapped_keys(run: PkiRun) -> None:
    """Sign by turns with resident keys, keys unwrapped lately and keys to unwrap, in one process.

    `unwrapping` is the limit of the last: what the module takes for it, without a signature.
    Generating so many RSA keys takes hours: four are made, and stored under the names of all agents. What is
    read, unwrapped and kept for a name is the same as if the keys differed.
    """
    store_records(run)
    turns = [ask(run.place, [*CHILD, "sign", str(SAMPLES)], {}, None) or {} for _ in range(TURNS)]
    rows = [["turn", "key", "p50 ms", "p99 ms", "p99 to resident", "key service s", "first signature s"]]
    for turn, found in enumerate(turns, 1):
        start = [number(found["check_s"]), number(found["first_s"])]
        for name in ("resident", "hit", "miss", "unwrapping"):
            ratio = f"{found[f'{name}_99'] / found['resident_99']:.2f}"
            figures = [number(found[f"{name}_{share}"]) for share in (50, 99)]
            rows.append([str(turn), name, *figures, ratio, *start])
            start = ["", ""]
    records = f"{run.options.agents:,} records of four keys"
    run.tell(f"Wrapped keys, {records}: signatures by turns, and the process's start", rows)
    for name in ("hit", "miss"):
        ratios = (found[f"{name}_99"] / found["resident_99"] for found in turns)
        run.figures[f"wrapped_{name}_p99_ratio"] = median(ratios)
