"""What no service on this machine can exceed: bare HSM signatures, bare ECDSA; and the check of a proof."""

import json
import subprocess
import sys
from statistics import median

from bench.harness import machine
from bench.harness.report import number
from bench.trust.run import TrustRun
from compliance.localdev.console import StepFailed

Limits = dict[str, float]

NAMES = {
    "hsm": "signatures of the token key through the key hosts, 1/s",
    "ecdsa": "ECDSA verifications by cryptography, all processors, 1/s",
    "proof": "DPoP proofs checked without Redis, one processor, 1/s",
    "proof_once": "DPoP proofs checked with Redis, one at a time, one processor, 1/s",
    "proof_group": "DPoP proofs checked with Redis, in groups of 50, one processor, 1/s",
}


def limits(run: TrustRun) -> Limits:
    """The medians of the turns."""
    turns = [_measured(run) for _ in range(run.options.turns)]
    found = {name: median(turn[name] for turn in turns) for name in turns[0]}
    found["ecdsa"] *= machine.cores()
    run.figures |= found
    rows = [["bare work", "1/s"], *([text, number(found[name])] for name, text in NAMES.items())]
    run.tell(f"Limits, medians of {run.options.turns} turns", rows)
    return found


def _measured(run: TrustRun) -> Limits:
    """What a process with the service's settings measures."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.trust.alone", str(run.options.seconds / 2)],
        env=run.place.environment() | {"LOG_LEVEL": "WARNING"},
        cwd=run.place.servers.layout.root,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise StepFailed(f"measuring the limits failed: {last}", hint="try `--fresh`")
    return dict(json.loads(done.stdout))
