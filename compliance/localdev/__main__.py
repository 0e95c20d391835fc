"""`python -m compliance.localdev run|test …`, which `./run` and `./test` call once Python is set up."""

import os
import signal
import sys

from .commands import run_command, supervise
from .console import StepFailed, complain
from .layout import find_layout
from .processes import Terminated
from .testing import run_tests


def main(arguments: list[str]) -> int:
    """Dispatch; the process's exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)
    kind, rest = arguments[0], arguments[1:]
    try:
        if kind == "supervise":
            return supervise(find_layout(), rest)
        if kind == "test":
            return run_tests(find_layout(), rest)
        return run_command(find_layout(), rest)
    except StepFailed as failure:
        complain(failure)
        return 1
    except PermissionError as error:
        hint = "use a checkout of your own, or set LOCAL_DIR to a folder of your own"
        complain(StepFailed(f"you may not touch {error.filename}", hint=hint))
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has seen enough; nor may Python's own flush at exit complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _interrupt(number: int, frame: object) -> None:
    raise Terminated


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
