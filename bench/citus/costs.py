"""Processor time of an event: the service on either kind of database, and one INSERT alone."""

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import psycopg

from bench.citus.conversation import Conversation
from bench.citus.ground import CITUS, KINDS, PLAIN, Ground
from bench.harness.report import number, table
from bench.harness.stats import median
from compliance.core.identifiers import new_id_at
from compliance.localdev.console import say

MICRO: Final = 1e6


@dataclass(frozen=True)
class Form:
    """How events come: so many tenants' together, so many of each."""

    name: str
    tenants: int
    each: int

    def groups(self, events: int) -> int:
        return max(1, events // (self.tenants * self.each))


FORMS: Final = (
    Form("single", 1, 1),
    Form("five events of five tenants", 5, 1),
    Form("ten events of ten tenants", 10, 1),
    Form("fifty events of five tenants", 5, 10),
    Form("batch of 1,000", 1, 1_000),
)
FLOOR, AT_NODE = "INSERT alone", "INSERT alone, at its node"
_COLUMNS: Final = {
    "id": "uuid", "tenant_id": "uuid", "agent_id": "uuid", "action_type": "text", "risk_score": "float8",
    "risk_band": "text", "occurred_at": "timestamptz", "received_at": "timestamptz", "details": "jsonb",
    "session_id": "text", "chain_id": "uuid", "reasons": "jsonb", "model_version": "text",
}  # fmt: skip
_INSERT: Final = (
    f"INSERT INTO events_behaviorevent ({', '.join(_COLUMNS)})"
    f" VALUES ({', '.join(f'%s::{kind}' for kind in _COLUMNS.values())})"
)
_NODE: Final = """
SELECT nodeport FROM pg_dist_placement JOIN pg_dist_node USING (groupid)
WHERE shardid = get_shard_id_for_distribution_column('agents_agent', %s::uuid)
"""


@dataclass
class Costs:
    """Microseconds of PostgreSQL's processors an event: by what was done and on what, one for each turn."""

    ground: Ground
    children: dict[str, Conversation]
    tenants: dict[str, Sequence[str]]
    events: int
    turns: int
    found: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    def measure(self) -> None:
        """Take turns between kinds and forms; the first turn warms up and does not count."""
        with ExitStack() as stack:
            floors = [*stack.enter_context(self._floors())]
            for turn in range(self.turns + 1):
                for form in FORMS:
                    for kind in KINDS:
                        self._note(turn, form.name, kind, self._stored(kind, form))
                for name, kind, insert in floors:
                    self._note(turn, name, kind, self._inserted(kind, insert))
                say(f"  … turn {turn} of {self.turns}")

    def figure(self, name: str, kind: str) -> float:
        """Return the median of the turns."""
        return median(self.found.get((name, kind), []))

    def ratio(self, name: str) -> float:
        """Return how often the cost on plain PostgreSQL an event costs on Citus."""
        return self.figure(name, CITUS) / self.figure(name, PLAIN)

    def lines(self) -> list[str]:
        """Return the table."""
        rows = [["µs an event", PLAIN, CITUS, "ratio"]]
        for name in [form.name for form in FORMS] + [FLOOR]:
            figures = [number(self.figure(name, kind)) for kind in KINDS]
            rows.append([name, *figures, number(self.ratio(name))])
        at_node = self.figure(AT_NODE, CITUS)
        rows.append([AT_NODE, "", number(at_node), number(at_node / self.figure(FLOOR, PLAIN))])
        return table(rows)

    def _note(self, turn: int, name: str, kind: str, cost: float) -> None:
        if turn:
            self.found.setdefault((name, kind), []).append(cost)

    def _stored(self, kind: str, form: Form) -> float:
        """Have the service store events."""
        began = self.ground.processor_seconds(kind)
        done = int(self.children[kind].ask("groups", form.groups(self.events), form.tenants, form.each))
        return (self.ground.processor_seconds(kind) - began) / done * MICRO

    def _inserted(self, kind: str, insert: "Insert") -> float:
        """Insert rows like the service's, each for itself."""
        began = self.ground.processor_seconds(kind)
        for _ in range(self.events):
            insert.one()
        return (self.ground.processor_seconds(kind) - began) / self.events * MICRO

    @contextmanager
    def _floors(self) -> Iterator[list[tuple[str, str, "Insert"]]]:
        with ExitStack() as stack:
            found = []
            for name, kind in ((FLOOR, PLAIN), (FLOOR, CITUS), (AT_NODE, CITUS)):
                tenant = self.tenants[kind][0]
                url = self.ground.url(kind, "service")
                if name == AT_NODE:
                    with self.ground.connected(kind) as connection:
                        (port,) = connection.execute(_NODE, [tenant]).fetchone() or (0,)
                    url = self.ground.url_at(int(port), "service")
                connection = stack.enter_context(psycopg.connect(url, autocommit=True))
                connection.execute("SET plan_cache_mode = force_generic_plan")
                found.append((name, kind, Insert(connection, tenant)))
            yield found


@dataclass(frozen=True)
class Insert:
    """One row by a prepared statement, and nothing else."""

    connection: "psycopg.Connection[tuple[Any, ...]]"
    tenant: str

    def one(self) -> None:
        at = datetime.now(UTC)
        row = [new_id_at(at), self.tenant, str(uuid.uuid4()), "data_access", 0.1, "low", at, at]
        details = json.dumps({"tool": "search_orders", "table": "orders", "rows": 12})
        self.connection.execute(_INSERT, [*row, details, "bench", None, "[]", "bench"], prepare=True)
