"""What the parts of `./run bench pki` share, and the parts that only need the HSM."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bench.harness.key_ground import KeyGround
from bench.harness.place import Place
from bench.harness.report import number, table
from compliance.localdev.console import say

SIGN_KEYS = 1_000
THREADS = (1, 4, 16)


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


def signing(run: PkiRun) -> None:
    """Signatures a second of one process, alone and beside key generation, and what limits them."""
    ground = KeyGround(run.place, SIGN_KEYS)
    ground.ensure()
    seconds = str(run.options.seconds)
    rows = [["threads", "measured", "1/s", "p50 ms", "p99 ms", "errors", "of raw PKCS#11", "of cryptography"]]
    for threads in map(str, THREADS):
        found = {
            "service": ground.ask("sign", threads, seconds, "-"),
            "… keys made in the process": ground.ask("sign", threads, seconds, "generate"),
            "… keys made in another": _beside(ground, threads, seconds),
            "raw PKCS#11": ground.ask("raw", threads, seconds),
            "cryptography, no HSM": ground.ask("software", threads, seconds),
        }
        limits = [found[name]["rate"] for name in ("raw PKCS#11", "cryptography, no HSM")]
        for name, one in found.items():
            figures = [number(one[key]) for key in ("rate", "p50_ms", "p99_ms")]
            shares = [f"{one['rate'] / limit:.0%}" for limit in limits]
            rows.append([threads, name, *figures, str(int(one["errors"])), *shares])
        say(f"  … {threads} threads")
    run.tell(f"Signing through one process, {SIGN_KEYS:,} keys, {seconds} s each", rows)


def _beside(ground: KeyGround, threads: str, seconds: str) -> dict[str, float]:
    with _working(ground):
        return ground.ask("sign", threads, seconds, "-")


@contextmanager
def _working(ground: KeyGround) -> Iterator[None]:
    process = ground.start("generate")
    try:
        yield
    finally:
        process.kill()
        process.wait()


def key_growth(run: PkiRun) -> None:
    """What a process pays for the number of keys: at its start, in memory, and for a signature."""
    rows = [
        [
            "keys",
            "start s",
            "its processor s",
            "first signatures p50 ms",
            "later p50 ms",
            "p99 ms",
            "memory MB",
        ]
    ]
    for size in run.options.sizes:
        ground = KeyGround(run.place, size)
        ground.ensure()
        found = ground.ask("growth", "2000")
        wanted = ("start_s", "start_cpu_s", "first_p50_ms", "p50_ms", "p99_ms", "memory_mb")
        rows.append([f"{size:,}", *(number(found[key]) for key in wanted)])
        say(f"  … {size:,} keys")
    run.tell("Growth: one process, keys over 64 shards", rows)
