"""What a run prints: figures beside peers (`Report`), or tables (`TableRun`)."""

import json
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.harness.place import Place

HEADINGS = ("", "service", "FastAPI", "to FastAPI")
ALONE = "·"


@dataclass(frozen=True)
class Row:
    """One figure; None where a peer has none. `less_is_better` for latencies."""

    name: str
    unit: str
    service: float | None = None
    fastapi: float | None = None
    less_is_better: bool = False
    note: str = ""

    def ratio(self) -> float | None:
        """How many times better than FastAPI the service is; over 1 is better, for latencies too."""
        if not self.fastapi or not self.service:
            return None
        return self.fastapi / self.service if self.less_is_better else self.service / self.fastapi

    def cells(self) -> list[str]:
        """The row as text."""
        return [
            f"{self.name}, {self.unit}" if self.unit else self.name,
            *(number(value) for value in (self.service, self.fastapi)),
            ALONE if (ratio := self.ratio()) is None else f"{ratio:.2f}",
        ]


@dataclass
class Report:
    """What a run found: lines about the machine, rows of figures, lines below them."""

    header: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    footer: list[str] = field(default_factory=list)

    def text(self) -> str:
        """All of it, aligned."""
        lines = [*self.header, ""]
        if self.rows:
            lines += [*table([list(HEADINGS), *(row.cells() for row in self.rows)]), ""]
            lines += [f"{row.name}: {row.note}" for row in self.rows if row.note]
        return "\n".join([*lines, *self.footer]) + "\n"

    def write_json(self, path: Path) -> None:
        """The same for programs."""
        content = {"header": self.header, "rows": [asdict(row) for row in self.rows], "footer": self.footer}
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


@dataclass
class TableRun:
    """One run whose result is tables of any shape for a person, and `figures` by name for programs."""

    options: Namespace
    place: Place
    lines: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def tell(self, title: str, rows: list[list[str]]) -> None:
        """Add a table; the first row holds its headings."""
        self.lines += ["", title, *table(rows)]


def number(value: float | None) -> str:
    """A figure as a person reads it: three digits that tell, thousands set apart."""
    if value is None or value != value:  # noqa: PLR0124  (nan)
        return ALONE
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest cell, the first set left; a rule below the headings."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return [lines[0], "  ".join("─" * width for width in widths), *lines[1:]]
