"""What every attack shares: breaches, the clock's budget, seeded chance, and the count of requests."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from random import Random
from socket import AddressFamily, SocketKind, getaddrinfo
from typing import TypeVar

Item = TypeVar("Item")
EXAMPLES = 2
"""Details kept of one kind of breach."""


class NotLoopback(Exception):
    """The target is not on this machine."""


@dataclass(frozen=True)
class Breach:
    """A broken promise: `rule` names it, `where` the endpoint or case, `detail` what was seen."""

    attack: str
    rule: str
    where: str
    detail: str


@dataclass
class Kind:
    """Breaches of one rule at one place, by one attack."""

    count: int = 0
    examples: list[str] = field(default_factory=list)


class Notebook:
    """What was found, and how much was sent, by threads in parallel."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.requests: Counter[str] = Counter()
        self.unreached: Counter[tuple[str, str]] = Counter()
        self.kinds: dict[tuple[str, str, str], Kind] = {}

    def sent(self, attack: str, count: int = 1) -> None:
        """Count requests."""
        with self._lock:
            self.requests[attack] += count

    def left_out(self, attack: str, what: str, count: int) -> None:
        """Count what the clock left no time for."""
        with self._lock:
            self.unreached[attack, what] += count

    def add(self, breach: Breach) -> None:
        """Note a breach beside those of its kind."""
        with self._lock:
            kind = self.kinds.setdefault((breach.attack, breach.rule, breach.where), Kind())
            kind.count += 1
            if len(kind.examples) < EXAMPLES and breach.detail not in kind.examples:
                kind.examples.append(breach.detail)

    def by_rule(self) -> dict[tuple[str, str], list[tuple[str, Kind]]]:
        """The places where each rule of an attack is broken."""
        found: dict[tuple[str, str], list[tuple[str, Kind]]] = {}
        for (attack, rule, where), kind in self.kinds.items():
            found.setdefault((attack, rule), []).append((where, kind))
        return found

    def found(self, attack: str) -> int:
        """How many kinds of breaches an attack found."""
        return sum(name == attack for name, _, _ in self.kinds)


@dataclass(frozen=True)
class Budget:
    """The time an attack may take."""

    ends: float

    @classmethod
    def of(cls, seconds: float) -> "Budget":
        """One that begins now."""
        return cls(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds; 0 when it is over."""
        return max(0.0, self.ends - time.monotonic())

    @property
    def is_over(self) -> bool:
        return self.left == 0.0


@dataclass(frozen=True)
class Address:
    """Where the service listens; made by `loopback()` only."""

    host: str
    port: int


def loopback(host: str, port: int) -> Address:
    """The target, by the address its name resolves to; raises `NotLoopback` for every other machine's."""
    found = {
        str(row[4][0]) for row in getaddrinfo(host, port, AddressFamily.AF_UNSPEC, SocketKind.SOCK_STREAM)
    }
    outside = sorted(text for text in found if not ip_address(text).is_loopback)
    if outside or not found:
        raise NotLoopback(
            f"{host} is {', '.join(outside) or 'nowhere'}; only loopback addresses are attacked"
        )
    return Address(min(found), port)


@dataclass(frozen=True)
class Siege:
    """One attack's run: its target, its chance, its time, its place in the notebook."""

    name: str
    address: Address
    seed: int
    is_short: bool
    budget: Budget
    notebook: Notebook
    figures: list[str]

    def random(self, share: object = "") -> Random:
        """Chance that the seed decides; each share of the work has its own."""
        return Random(f"{self.seed}/{self.name}/{share}")

    def pick(self, *, short: int, long: int) -> int:
        """A count, by the size of the run."""
        return short if self.is_short else long

    def report(self, rule: str, where: str, detail: str) -> None:
        """Note a breach."""
        self.notebook.add(Breach(self.name, rule, where, detail[:600]))

    def sent(self, count: int = 1) -> None:
        """Count requests."""
        self.notebook.sent(self.name, count)

    def within(self, items: Sequence[Item], what: str, *, spare: float = 0.0) -> Iterator[Item]:
        """The items while more than `spare` seconds are left; the others are noted as not reached."""
        for number, item in enumerate(items):
            if self.budget.left <= spare:
                self.notebook.left_out(self.name, what, len(items) - number)
                return
            yield item

    def spread(self, work: Callable[[int], None], *, threads: int) -> None:
        """Run `work(number)` in so many threads; a defect in one of them is raised here."""
        errors: list[BaseException] = []

        def guarded(number: int) -> None:
            try:
                work(number)
            except BaseException as error:  # noqa: BLE001  (raised below, in the thread that waits)
                errors.append(error)

        running = [threading.Thread(target=guarded, args=(number,), daemon=True) for number in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        if errors:
            raise errors[0]
