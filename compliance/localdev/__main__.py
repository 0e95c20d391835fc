"""The work of `./run` and `./test` after the installation: `python -m compliance.localdev run|test …`."""

import os
import signal
import socket
import sys

from .commands import run_command
from .console import StepFailed, complain
from .layout import Layout, find_layout
from .servers.processes import Terminated
from .servers.supervisor import supervise
from .testing import run_tests


def _supervise(layout: Layout, arguments: list[str]) -> int:
    """Be the supervisor that `Stack.up` starts: the argument is the number of the web server's socket."""
    with socket.socket(fileno=int(arguments[0])) as listener:
        return supervise(layout, listener)


ENTRIES = {"run": run_command, "test": run_tests, "supervise": _supervise}


def main(arguments: list[str]) -> int:
    """Run the command; return the exit code."""

    def _terminate(number: int, frame: object) -> None:
        raise Terminated

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _terminate)
    try:
        return ENTRIES[arguments[0]](find_layout(), arguments[1:])
    except StepFailed as failure:
        complain(failure)
        return 1
    except PermissionError as error:
        hint = "use a checkout of your own, or set LOCAL_DIR to a folder of your own"
        complain(StepFailed(f"no permission for {error.filename}", hint=hint))
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has left; Python's flush at exit would complain of it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
