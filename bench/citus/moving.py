"""A tenant gets a shard of its own and moves to another node while its events go on."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bench.citus.conversation import Conversation
from bench.citus.ground import CITUS, Ground
from bench.harness.report import number
from compliance.localdev.console import step

WANTED_SECONDS: Final = 2.0
_SHARD: Final = "SELECT get_shard_id_for_distribution_column('agents_agent', %s::uuid)"
_PLACE: Final = """
SELECT nodename, nodeport FROM pg_dist_placement JOIN pg_dist_node USING (groupid) WHERE shardid = %s
"""
_OTHER: Final = """
SELECT nodename, nodeport FROM pg_dist_node WHERE groupid <> 0 AND nodeport <> %s ORDER BY nodeport LIMIT 1
"""
_ISOLATE: Final = """
SELECT isolate_tenant_to_new_shard('agents_agent', %s::uuid, 'CASCADE', shard_transfer_mode => %s)
"""
_MOVE: Final = "SELECT citus_move_shard_placement(%s, %s, %s, %s, %s, shard_transfer_mode => %s)"
_STORED: Final = """
SELECT session_id, count(*) FROM events_behaviorevent WHERE tenant_id = %s GROUP BY session_id
"""


@dataclass
class Moving:
    """One run: what was done in which seconds, and what became of the events of the tenants."""

    ground: Ground
    child: Conversation
    mode: str
    settle: float
    steps: dict[str, float] = field(default_factory=dict)
    sent: Mapping[str, Any] = field(default_factory=dict)
    lost: int = 0
    doubled: int = 0

    def run(self, tenant: str, other: str) -> None:
        """Isolate and move the first tenant; the second's events go on beside it."""
        self.child.ask("send", tenant, other)
        time.sleep(self.settle)
        with self.ground.connected(CITUS) as connection:
            connection.execute("SET statement_timeout = 0")
            began = time.monotonic()
            with step("the tenant gets a shard of its own"):
                (shard,) = connection.execute(_ISOLATE, [tenant, self.mode]).fetchone() or (0,)
            self.steps["isolated"] = time.monotonic() - began
            time.sleep(self.settle)
            source = connection.execute(_PLACE, [shard]).fetchone() or ("", 0)
            target = connection.execute(_OTHER, [source[1]]).fetchone() or ("", 0)
            began = time.monotonic()
            with step("it moves to the other node"):
                connection.execute(_MOVE, [shard, *source, *target, self.mode])
            self.steps["moved"] = time.monotonic() - began
        time.sleep(self.settle)
        self.sent = self.child.ask("stop")
        for name in (tenant, other):
            self._compare(name)

    def _compare(self, tenant: str) -> None:
        with self.ground.connected(CITUS) as connection:
            stored = dict(connection.execute(_STORED, [tenant]).fetchall())
        sent = self.sent[tenant]["sent"]
        self.lost += sum(session not in stored for session in sent)
        self.doubled += sum(number > 1 for session, number in stored.items() if session in set(sent))

    @property
    def longest(self) -> float:
        """The longest that a tenant's event waited, its repetitions included, in seconds."""
        return max(float(one["longest"]) for one in self.sent.values())

    @property
    def is_held(self) -> bool:
        return not self.lost and not self.doubled

    def lines(self) -> list[str]:
        """Say what happened."""
        (moved, other) = self.sent.values()
        took = ", ".join(f"{name} in {number(seconds)} s" for name, seconds in self.steps.items())
        return [
            f"A tenant {took} ({self.mode})",
            f"Events acknowledged: {len(moved['sent']):,} of that tenant, {len(other['sent']):,} of another; "
            f"lost {self.lost}, stored twice {self.doubled}",
            f"Longest pause: {number(moved['longest'])} s of that tenant, {number(other['longest'])} s of the"
            f" other; wanted at most {WANTED_SECONDS:g} s",
            f"Errors, each sent again: {moved['errors'] or 'none'} of that tenant,"
            f" {other['errors'] or 'none'} of the other",
        ]
