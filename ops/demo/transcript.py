"""The demo's output: a line for each step with its time, its target and whether it went as specified."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import TextIOBase
from time import perf_counter


class ExpectationFailed(Exception):
    """The service answered something other than what it promises."""


def expect(condition: object, complaint: str) -> None:
    """Raise `ExpectationFailed` with `complaint` unless `condition` holds."""
    if not condition:
        raise ExpectationFailed(complaint)


@dataclass
class Step:
    """A step in progress: `note` is printed after its name; `seconds`, if set, replaces the measured time."""

    note: str = ""
    seconds: float | None = None


@dataclass
class Transcript:
    """Prints each step as it ends, and keeps the numbers of those slower than their target."""

    out: TextIOBase
    slow: list[int] = field(default_factory=list)
    count: int = 0

    @contextmanager
    def step(self, name: str, *, target: float | None = None) -> Iterator[Step]:
        """Run the block as one step. A failure is printed and raised; a missed `target` (seconds) is noted.

        Targets hold on a machine of the service's own: a busy one is no failure.
        """
        self.count += 1
        step = Step()
        begun = perf_counter()
        try:
            yield step
        except Exception:
            self._line("✗", name, "failed")
            raise
        spent = perf_counter() - begun if step.seconds is None else step.seconds
        is_slow = target is not None and spent > target
        if is_slow:
            self.slow.append(self.count)
        limit = f" (target {target:g} s)" if target is not None else ""
        self._line("!" if is_slow else "✓", name, f"{spent:.3f} s{limit}  {step.note}".rstrip())

    def _line(self, mark: str, name: str, rest: str) -> None:
        self.out.write(f"  {mark} {self.count:2d}. {name:<52} {rest}\n")
        self.out.flush()
