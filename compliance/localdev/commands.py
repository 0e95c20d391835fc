"""What `./run` can do."""

import os
import sys

from .console import StepFailed
from .layout import Layout
from .processes import run_foreground
from .servers import Servers, in_use


def run_command(layout: Layout, arguments: list[str]) -> int:
    """Do what `arguments` ask; the process's exit code."""
    if arguments[:1] != ["manage"]:
        raise StepFailed("unknown", hint="./run manage")
    return manage(layout, arguments[1:])


def manage(layout: Layout, arguments: list[str]) -> int:
    """`manage.py` with the stack's environment."""
    servers = Servers(layout)
    with in_use(servers):
        command = [sys.executable, str(layout.root / "manage.py"), *arguments]
        return run_foreground(command, env=servers.environment(), cwd=_here())


def _here() -> "os.PathLike[str]":
    return __import__("pathlib").Path.cwd()
