"""One run of `./run bench pki`: its options, place, tables and figures."""

from dataclasses import dataclass, field
from pathlib import Path

from bench.harness.place import Place
from bench.harness.report import table


@dataclass(frozen=True)
class PkiOptions:
    """What the person asked for."""

    seconds: float
    sizes: tuple[int, ...]
    agents: int
    certifications: int
    drained: int
    lists: tuple[int, ...]
    peer_seconds: float
    only: frozenset[str]
    offered: float
    turns: int
    json: Path | None = None


@dataclass
class PkiRun:
    """One run, from its place to its tables."""

    options: PkiOptions
    place: Place
    lines: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    """What programs read of the run, by name."""

    def tell(self, title: str, rows: list[list[str]]) -> None:
        """Add a table; the first row holds its headings."""
        self.lines += ["", title, *table(rows)]
