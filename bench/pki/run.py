"""One run of `./run bench pki`: its options, place, tables and figures."""

from dataclasses import dataclass
from pathlib import Path

from bench.harness.place import Place
from bench.harness.report import Tables


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
class PkiRun(Tables):
    """One run, from its place to its tables."""

    options: PkiOptions
    place: Place
