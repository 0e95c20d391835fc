"""`./run attack`: start a service with raised rate limits, attack it, stop it.

The service has databases and keys of its own beside the developer's. Only its web server runs: without a
webhook sender nothing that an attack registers is ever sent anywhere.
"""

import argparse
import os
import random
import subprocess
import sys
from collections.abc import Sequence

from bench.attack.attacks import NAMES
from bench.harness import web
from bench.harness.command import ended
from bench.harness.place import find_place
from compliance.localdev.console import say, step

# A long run registers thousands; how many a tenant may have is not what is attacked.
ROOM = {"WEBHOOKS_PER_TENANT": "1000000"}
WHOLE_RUN_SECONDS = {"short": 75, "long": 3_600}


def main(arguments: Sequence[str]) -> int:
    """Start, attack, stop; 0 when nothing was found, 6 when something was, 1 when it could not be done."""
    options = _parser().parse_args(arguments)
    unknown = set(options.only.split(",")) - set(NAMES) if options.only else set()
    if unknown:
        _parser().error(f"no such attack: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    size = "short" if options.short else "long"
    seconds = options.seconds or WHOLE_RUN_SECONDS[size]
    os.environ |= ROOM
    session = ["--seed", str(seed), "--size", size, "--seconds", str(seconds), "--only", options.only]
    return ended(lambda: _attack(session, fresh=options.fresh, seed=seed, seconds=seconds))


def _attack(session: Sequence[str], *, fresh: bool, seed: int, seconds: int) -> int:
    place = find_place()
    with place.prepared(0, fresh=fresh):
        web.clear_leftovers(place)
        with step("the service's web server"), web.service(place) as service:
            say(f"  … seed {seed}, at most {seconds} s; `--seed {seed}` repeats it")
            command = [sys.executable, "-m", "bench.attack.session", "--port", str(service.port), *session]
            root = place.servers.layout.root
            return subprocess.run(command, env=place.environment(), cwd=root, check=False).returncode


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./run attack", description=__doc__)
    parser.add_argument("--short", action="store_true", help="small counts, about a minute; what CI runs")
    parser.add_argument("--seed", type=int, help="repeat a run's choices; printed by each")
    parser.add_argument("--seconds", type=int, help="end after so long, whatever is left to do")
    parser.add_argument("--only", default="", help=f"some of: {','.join(NAMES)}")
    parser.add_argument("--fresh", action="store_true", help="make the databases anew")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
