"""The dashboard is one that Grafana imports: its panels are whole, apart from one another, and grouped."""

import json
import re
from collections import Counter
from itertools import combinations
from typing import Any

from deploy.tests import promql

PANELS = promql.panels()
GRAPHS = [panel for panel in PANELS if panel["type"] != "row"]
GROUPS = [
    *("Objectives", "Traffic", "Ingest", "Risk and strikes", "Webhooks and signals", "HSM and keys"),
    *("Lists and audit log", "Tasks", "Database and Valkey"),
]
VARIABLES = {"datasource", "environment", "__rate_interval"}


def area(panel: dict[str, Any]) -> set[tuple[int, int]]:
    """The cells of the grid, 24 wide, that a panel covers."""
    place = panel["gridPos"]
    columns = range(place["x"], place["x"] + place["w"])
    rows = range(place["y"], place["y"] + place["h"])
    return {(column, row) for column in columns for row in rows}


def test_groups_are_rows_in_their_order() -> None:
    assert [panel["title"] for panel in PANELS if panel["type"] == "row"] == GROUPS


def test_ids_and_titles_are_unique() -> None:
    assert max(Counter(panel["id"] for panel in PANELS).values()) == 1
    assert max(Counter(panel["title"] for panel in PANELS).values()) == 1


def test_panels_lie_apart_within_the_grid() -> None:
    cells = [area(panel) for panel in PANELS]

    assert all(0 <= column < 24 for found in cells for column, _ in found)
    assert [pair for pair in combinations(cells, 2) if pair[0] & pair[1]] == []


def test_graphs_have_queries_with_names() -> None:
    for panel in GRAPHS:
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) > 0
        for target in panel["targets"]:
            assert (
                target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            )
            tree = promql.parsed(target["expr"].replace("$__rate_interval", "5m"))
            named = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            kept = [labels for labels, _ in promql.aggregations(tree)]
            assert named <= set().union(*kept)


def test_variables_are_declared() -> None:
    dashboard = json.loads(promql.DASHBOARD.read_text())
    declared = {one["name"] for one in dashboard["templating"]["list"]}
    used = {one.strip("${}") for one in re.findall(r"\$\{?\w+\}?", json.dumps(dashboard["panels"]))}

    assert used == VARIABLES
    assert declared == VARIABLES - {"__rate_interval"}
    assert dashboard["uid"]
    assert dashboard["schemaVersion"] >= 36
