"""What the parts of `./run bench pki` share."""

from dataclasses import dataclass, field

from bench.harness.place import Place
from bench.harness.report import table


@dataclass(frozen=True)
class PkiOptions:
    """What the person asked for."""

    seconds: float
    sizes: tuple[int, ...]
    certifications: int
    drained: int
    lists: tuple[int, ...]
    peer_seconds: float
    only: frozenset[str]
    offered: float
    turns: int


@dataclass
class PkiRun:
    """One run, from its place to its tables."""

    options: PkiOptions
    place: Place
    lines: list[str] = field(default_factory=list)

    def tell(self, title: str, rows: list[list[str]]) -> None:
        """Add a table; the first row holds its headings."""
        self.lines += ["", title, *table(rows)]
