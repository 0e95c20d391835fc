"""The tables of costs and needs, for a terminal and for docs/scaling.md."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.capacity.model import MEASURED, OPERATIONS, ROLES, Costs, Plan
from bench.harness.report import number, table
from compliance.localdev.console import StepFailed

BEGIN, END = "<!-- capacity: written by `./run bench capacity --document` -->", "<!-- end of capacity -->"
MEASURED_FILE = "bench/capacity/measured.json"

Rows = list[list[str]]


def cost_rows(costs: Costs) -> Rows:
    """Each operation at each number of web processes."""
    rows = [["processor time, µs, measured", "web processes", *ROLES, "together", "WAL, bytes"]]
    for operation in OPERATIONS:
        for count, cost in sorted(costs.operations.get(operation, {}).items()):
            spent = [number(cost.processor_us.get(role, 0.0)) for role in ROLES]
            rows.append([operation, str(count), *spent, number(cost.total_us), number(cost.wal_bytes)])
    return rows


def size_rows(costs: Costs) -> Rows:
    """What is kept of events and agents."""
    sizes = {
        "an event on disk, with indexes": costs.event_disk,
        "an event in an archive": costs.event_archived,
        "an agent with its certificate and its audit entries, on disk": costs.agent_disk,
        "an agent's state in Valkey": costs.agent_state,
    }
    return [["size", "bytes", ""], *([name, number(size), MEASURED] for name, size in sizes.items())]


def plan_rows(plans: Mapping[str, Plan]) -> Rows:
    """What each workload needs."""
    (first, *_) = plans.values()
    rows = [["needed", *plans, "unit", ""]]
    for one in first.figures:
        values = [number(plan.value(one.name)) for plan in plans.values()]
        rows.append([one.name, *values, one.unit, one.basis])
    return rows


def ceiling_rows(plans: Mapping[str, Plan]) -> Rows:
    """What one database carries of each workload."""
    (first, *_) = plans.values()
    rows = [["events a second that one database carries", *plans, ""]]
    for one in first.ceilings:
        found = [number(plan.ceiling(one.name)) for plan in plans.values()]
        rows.append([one.name, *found, one.basis])
    return rows


def all_rows(costs: Costs, plans: Mapping[str, Plan]) -> list[Rows]:
    return [cost_rows(costs), size_rows(costs), plan_rows(plans), ceiling_rows(plans)]


def text(costs: Costs, plans: Mapping[str, Plan]) -> str:
    """All tables for a terminal."""
    parts = ["\n".join(table(rows)) for rows in all_rows(costs, plans)]
    return "\n\n".join(["", costs.measured_on, *parts, ""])


def block(costs: Costs, plans: Mapping[str, Plan]) -> str:
    """All tables in Markdown, between the marks by which the document's block is found."""
    parts = [_markdown(rows) for rows in all_rows(costs, plans)]
    return "\n\n".join([BEGIN, f"Measured on {costs.measured_on}.", *parts, END])


def document(path: Path, costs: Costs, plans: Mapping[str, Plan]) -> None:
    """Write the tables into the document at `path`. Raises StepFailed if it has no place for them."""
    before, begin, rest = path.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise StepFailed(
            f"{path} has no place for the tables", hint=f"put these lines into it: {BEGIN} {END}"
        )
    path.write_text(before + block(costs, plans) + after)


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])
