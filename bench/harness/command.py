"""A bench as a command: how it ends, and what it prints."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from compliance.localdev.console import StepFailed, complain

FAILED: Final = 1
INTERRUPTED: Final = 130


def ended(work: Callable[[], int]) -> int:
    """Do the work and return its exit code, or that of a step that failed or of an interrupt."""
    # A shell's background job ignores interrupts; ours must end, and clean up, when it is asked to.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        return work()
    except StepFailed as failure:
        complain(failure)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


def tell(lines: Iterable[str], figures: Mapping[str, Any] | None = None, path: Path | None = None) -> None:
    """Print the lines; write the figures to the file, if one is named."""
    sys.stdout.write("\n".join(["", *lines, ""]))
    if path is not None:
        path.write_text(json.dumps(figures, indent=2) + "\n")


def manage(
    root: Path,
    environment: Mapping[str, str],
    arguments: Sequence[str],
    *,
    accepted: Sequence[int],
    hint: str,
) -> str:
    """Run a command of the service; return what it printed. Raises StepFailed on another exit code."""
    done = subprocess.run(
        [sys.executable, str(root / "manage.py"), *arguments], env=environment, cwd=root, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    if done.returncode not in accepted:
        reason = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise StepFailed(f"manage.py {arguments[0]} failed: {''.join(reason)}", hint=hint)
    return done.stdout
