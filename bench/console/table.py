"""The table of pages: what each took, beside its bare statements and Django's plain list of the same rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from bench.console.asking import Timed
from bench.harness.report import number
from bench.harness.stats import median, percentile

MEDIAN_MS, P95_MS, QUERIES = 300.0, 800.0, 20
HEADINGS = [
    *("page", "addresses", "median", "p95", "slowest address", "queries", "processor", "database"),
    *("its SQL alone", "ratio", "plain list", ""),
]
WORDS = 34


@dataclass(frozen=True)
class PageRow:
    """The addresses of one page as one person sees them, in milliseconds."""

    name: str
    timed: Sequence[Timed]
    plain: float | None

    @property
    def seconds(self) -> list[float]:
        return sorted(one for timed in self.timed for one in timed.seconds)

    @property
    def slowest(self) -> Timed:
        return max(self.timed, key=lambda timed: median(timed.seconds) if timed.seconds else float("inf"))

    @property
    def queries(self) -> int:
        return max(int(timed.page["queries"]) for timed in self.timed)

    def problems(self) -> list[str]:
        """What of the targets is not held."""
        found = [
            f"{_address(timed)} failed"
            for timed in self.timed
            if timed.failures or timed.page["status"] >= 500
        ]
        found += [
            f"{_address(timed)}: median {median(timed.seconds) * 1e3:.0f} ms"
            for timed in self.timed
            if median(timed.seconds) * 1e3 > MEDIAN_MS
        ]
        if percentile(self.seconds, 0.95) * 1e3 > P95_MS:
            found.append(f"{self.name}: p95 {percentile(self.seconds, 0.95) * 1e3:.0f} ms")
        found += [
            f"{_address(timed)}: {timed.page['queries']} queries"
            for timed in self.timed
            if timed.page["queries"] > QUERIES
        ]
        return found

    def cells(self) -> list[str]:
        slowest, database = self.slowest, median([timed.page["database"] for timed in self.timed])
        bare, half = median([timed.page["bare"] for timed in self.timed]), median(self.seconds)
        return [
            self.name,
            str(len(self.timed)),
            number(half * 1e3),
            number(percentile(self.seconds, 0.95) * 1e3),
            f"{number(median(slowest.seconds) * 1e3)} {slowest.page['what'][:WORDS]}".strip(),
            str(self.queries),
            number(median([timed.page["worked"] for timed in self.timed]) * 1e3),
            number(database * 1e3),
            number(bare * 1e3),
            number(half / bare if bare else None),
            number(self.plain and self.plain * 1e3),
            "" if not self.problems() else "← OVER",
        ]


def page_rows(timed: Iterable[Timed], plain: dict[str, float]) -> list[PageRow]:
    """Return a row for each person and page; `plain` has the seconds of Django's own list by route."""
    key = lambda one: (one.who, one.page["route"])  # noqa: E731
    return [
        PageRow(f"{who} · {route}", list(group), plain.get(route) if who == "operator" else None)
        for (who, route), group in groupby(sorted(timed, key=key), key=key)
    ]


def _address(timed: Timed) -> str:
    return f"{timed.who} {timed.page['url']}"
