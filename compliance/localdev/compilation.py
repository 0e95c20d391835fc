"""Has the hot modules compiled while the servers start; without a compiler they run as Python, slower."""

import os
import subprocess
import sys
import time
from types import TracebackType
from typing import Self

from .console import say
from .layout import Layout


class Compilation:
    """One call of `python -m compliance.compiling`, which runs beside the block and ends with it."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.started = time.monotonic()
        self.told = False

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "compliance.compiling"],
            cwd=self.layout.root,
            env={**os.environ, "PYTHONPATH": str(self.layout.root)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return self

    def wait(self) -> None:
        """Wait for its end and tell what came of it; nothing if all was compiled already."""
        if self.told:
            return
        output = self.process.communicate()[0].strip()
        self.told = True
        if self.process.returncode == 0 and output:
            say(f"  ✓ compiled modules  {time.monotonic() - self.started:.1f} s")
        elif output:
            say(f"  ! {output}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.wait()
        elif not self.told:
            self.process.terminate()
            self.process.communicate()
