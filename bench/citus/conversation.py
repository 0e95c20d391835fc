"""A child process, and the commands that its parent sends it as lines."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.citus.ground import Ground
from compliance.localdev.console import StepFailed

END_SECONDS = 20.0


class Conversation:
    """The parent's side of `bench.citus.child`."""

    def __init__(self, child: "subprocess.Popen[str]") -> None:
        self._child = child

    def ask(self, command: str, *arguments: Any) -> Any:
        """Have the child do something; return its answer. Raises StepFailed."""
        if self._child.stdin is None or self._child.stdout is None:
            raise ValueError("the child has no pipes")
        self._child.stdin.write(json.dumps([command, *arguments]) + "\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        if not line:
            raise StepFailed(f"the service's process ended at `{command}`", hint="read its message above")
        return json.loads(line)


@contextmanager
def conversation(ground: Ground, kind: str) -> Iterator[Conversation]:
    """Run a child over a kind of database inside the block."""
    command = [sys.executable, "-m", "bench.citus.child"]
    root = ground.servers.layout.root
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=ground.environment(kind), cwd=root, text=True, **pipes) as child:  # type: ignore[call-overload]
        try:
            yield Conversation(child)
        finally:
            if child.stdin is not None:
                child.stdin.close()
            try:
                child.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
