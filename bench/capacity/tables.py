"""The tables that `./run bench capacity` prints."""

from bench.capacity.model import MEASURED, OPERATIONS, ROLES, Costs, Plan
from bench.harness.report import number, table


def cost_table(costs: Costs) -> list[str]:
    """Each operation at each number of web processes."""
    rows = [["processor time, µs (measured)", "web processes", *ROLES, "together", "WAL, bytes"]]
    for operation in OPERATIONS:
        for count, cost in sorted(costs.operations.get(operation, {}).items()):
            spent = [number(cost.processor_us.get(role, 0.0)) for role in ROLES]
            rows.append([operation, str(count), *spent, number(cost.total_us), number(cost.wal_bytes)])
    sizes = [["bytes", "", ""]]
    sizes += [
        [name, number(value), MEASURED]
        for name, value in (
            ("an event on disk, with indexes", costs.event_disk),
            ("an event in an archive", costs.event_archived),
            ("an agent with its certificate on disk", costs.agent_disk),
            ("an agent's state in Valkey", costs.agent_state),
        )
    ]
    return [*table(rows), "", *table(sizes)]


def plan_table(plan: Plan) -> list[str]:
    """What the workload needs, and what carries it no further."""
    rows = [["needed", "", "unit", "basis"]]
    rows += [[one.name, number(one.value), one.unit, one.basis] for one in plan.figures]
    limits = [["events a second at most, one writer", "", "basis"]]
    limits += [[one.name, number(one.events), one.basis] for one in plan.ceilings]
    return [*table(rows), "", *table(limits)]
