"""Compile the scorer; without a compiler it runs as Python, slower."""

import os
import sys
import time

from ..console import say
from ..layout import Layout
from ..servers.processes import captured


def compile_scorer(layout: Layout) -> None:
    """Run `python -m events.risk.compiling` and report what it did; nothing if all was compiled already."""
    if os.environ.get("COMPILED") == "0":
        return
    started = time.monotonic()
    command = [sys.executable, "-P", "-m", "events.risk.compiling"]
    done = captured(command, cwd=layout.root, env={**os.environ, "PYTHONPATH": str(layout.root)})
    if done.returncode != 0:
        say(f"  ! {(done.stdout + done.stderr).strip()}")
    elif done.stdout or done.stderr:
        say(f"  ✓ compiled scorer  {time.monotonic() - started:.1f} s")
