"""The work of `./run` and `./test` after the installation: `python -m compliance.localdev run|test …`."""

import os
import signal
import sys

from .commands import run_command
from .console import exit_code
from .layout import Layout
from .servers.processes import Terminated
from .servers.supervisor import supervise
from .testing import run_tests


def _terminate(number: int, frame: object) -> None:
    raise Terminated


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _terminate)
    name, *arguments = sys.argv[1:]
    entry = {"run": run_command, "test": run_tests, "supervise": supervise}[name]
    try:
        sys.exit(exit_code(lambda: entry(Layout(), arguments)))
    except BrokenPipeError:
        # The reader of our output has left; Python's flush at exit would complain of it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
