"""How the scenario is told: one line a step, with its time beside the target, and a verdict."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol


class Output(Protocol):
    """Where the story is told."""

    def write(self, text: str, /) -> object: ...

    def flush(self) -> None: ...


class StepFailed(Exception):
    """A step saw something else than what the service promises."""


def expect(condition: object, complaint: str) -> None:
    """Raise `StepFailed` unless `condition` holds."""
    if not condition:
        raise StepFailed(complaint)


@dataclass
class Step:
    """A step being played; `note` is shown behind its name, `seconds` replaces its own time if set."""

    name: str
    target: float | None
    note: str = ""
    seconds: float | None = None


@dataclass
class Story:
    """Prints the steps as they are played and remembers whether all went well."""

    out: Output
    failures: list[str] = field(default_factory=list)
    slow: list[int] = field(default_factory=list)
    count: int = 0

    @contextmanager
    def step(self, name: str, *, target: float | None = None) -> Iterator[Step]:
        """Play one step; a failure is printed and ends the scenario, a missed target is only told.

        The targets are the service's on a machine of its own; a busy one breaks no promise.
        """
        self.count += 1
        played = Step(name, target)
        begun = perf_counter()
        try:
            yield played
        except Exception as error:
            self.failures.append(name)
            self._line("✗", name, f"{type(error).__name__}: {error}")
            raise
        spent = played.seconds if played.seconds is not None else perf_counter() - begun
        limit = f" (target {target:g} s)" if target is not None else ""
        missed = target is not None and spent > target
        if missed:
            self.slow.append(self.count)
        self._line("!" if missed else "✓", name, f"{spent:.3f} s{limit}  {played.note}".rstrip())

    def _line(self, mark: str, name: str, rest: str) -> None:
        self.out.write(f"  {mark} {self.count:2d}. {name:<52} {rest}\n")
        self.out.flush()
