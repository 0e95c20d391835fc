"""`python -m bench.attack.session`: the attacks themselves, against a service that runs; prints the table."""

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Sequence

import django

django.setup()

from bench.attack import (  # noqa: E402
    addresses,
    entrances,
    fuzz,
    generated,
    opening,
    privileges,
    protocol,
    races,
    standing,
    strangers,
    tokens,
)
from bench.attack.attacks import NAMES  # noqa: E402
from bench.attack.core import Budget, Notebook, NotLoopback, Siege, loopback  # noqa: E402
from bench.attack.world import World, make_world  # noqa: E402
from bench.harness.report import number, table  # noqa: E402

FOUND = 6
Attack = Callable[[Siege, World], None]
ATTACKS: dict[str, Attack] = {
    "opening": opening.run, "entrances": entrances.run, "privileges": privileges.run,
    "standing": standing.run, "strangers": strangers.run, "tokens": tokens.run,
    "addresses": addresses.run, "protocol": protocol.run, "races": races.run, "fuzz": fuzz.run,
    "generated": generated.run,
}  # fmt: skip
# Of a run's seconds, at most; what one leaves the others may use.
SHARES = {"fuzz": 0.6, "generated": 0.7, "privileges": 0.5}
USUAL_SHARE = 0.35
PLACES = 8
"""Endpoints or cases told of in full for one broken rule."""


def main(arguments: Sequence[str]) -> int:
    """Attack and print; 0 when nothing was found, 6 when something was."""
    options = _parser().parse_args(arguments)
    try:
        address = loopback("127.0.0.1" if options.host is None else options.host, options.port)
    except (NotLoopback, OSError) as refusal:
        print(f"✗ {refusal}", file=sys.stderr)
        return 1
    whole = Budget.of(options.seconds)
    notebook, figures, seconds = Notebook(), list[str](), dict[str, float]()
    wanted = [name for name in NAMES if not options.only or name in options.only.split(",")]
    world = make_world()
    for name in wanted:
        print(f"  … {name}", flush=True)
        began = time.monotonic()
        siege = Siege(
            name=name, address=address, seed=options.seed, is_short=options.size == "short",
            budget=Budget.of(whole.left * SHARES.get(name, USUAL_SHARE)), notebook=notebook, figures=figures,
        )  # fmt: skip
        try:
            ATTACKS[name](siege, world)
        except Exception as error:  # noqa: BLE001  (an attack that breaks off is itself told of)
            traceback.print_exception(error, limit=-4, chain=False)
            siege.report("the attack could not go on", "", f"{type(error).__name__}: {error}")
        seconds[name] = time.monotonic() - began
    print("\n" + "\n".join(_summary(notebook, seconds, figures, options.seed)), flush=True)
    return FOUND if notebook.kinds else 0


def _summary(notebook: Notebook, seconds: dict[str, float], figures: list[str], seed: int) -> list[str]:
    """The findings, one row for each attack, and what there was no time for."""
    lines = []
    for (attack, rule), kinds in notebook.by_rule().items():
        lines.append(f"✗ {attack}: {rule}")
        for where, kind in kinds[:PLACES]:
            lines.append(f"      {where} ({kind.count} times)")
            lines += [f"          {example}" for example in kind.examples if example]
        if len(kinds) > PLACES:
            lines.append(
                f"      and {len(kinds) - PLACES} more: {', '.join(where for where, _ in kinds[PLACES:])}"
            )
    rows = [
        [name, f"{notebook.requests[name]:,}", str(notebook.found(name)), number(taken)]
        for name, taken in seconds.items()
    ]
    total = sum(notebook.requests[name] for name in seconds)
    rows.append(["all", f"{total:,}", str(len(notebook.kinds)), number(sum(seconds.values()))])
    return [
        *lines, "", *table([["attack", "requests", "findings", "seconds"], *rows]), "",
        *(f"{attack}: not reached: {count:,} {what}" for (attack, what), count in notebook.unreached.items()),
        *figures, f"seed {seed}",
    ]  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.attack.session", description=__doc__)
    parser.add_argument("--host", help="loopback only (127.0.0.1)")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--size", choices=["short", "long"], default="short")
    parser.add_argument("--seconds", type=float, default=75.0)
    parser.add_argument("--only", default="")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
