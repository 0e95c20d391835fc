"""What rules and the dashboard ask for: PromQL read by a parser."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import yaml
from promql_parser import AggregateExpr, BinaryExpr, Call, MatrixSelector, VectorSelector

from deploy.tests.programs import DEPLOY

PROMETHEUS = DEPLOY / "prometheus"
DASHBOARD = DEPLOY / "grafana/dashboard.json"
RULES = sorted(PROMETHEUS.glob("*.rules.yml"))
ALERTS = sorted(PROMETHEUS.glob("*.alerts.yml"))
ADDED = {"instance", "job"}
"""Labels that Prometheus adds."""


def rules_of(path: Path) -> list[dict[str, Any]]:
    """The rules of all groups of a file."""
    return [rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]


def alerts() -> list[dict[str, Any]]:
    return [rule for path in ALERTS for rule in rules_of(path)]


def panels() -> list[dict[str, Any]]:
    """The panels of the dashboard, rows included."""
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


def expressions() -> dict[str, str]:
    """Each expression of rules, alerts and the dashboard, by where it stands."""
    found = {}
    for path in (*RULES, *ALERTS):
        for number, rule in enumerate(rules_of(path)):
            found[f"{path.name} {number} {rule.get('alert') or rule['record']}"] = rule["expr"]
    for panel in panels():
        for target in panel.get("targets", ()):
            text = target["expr"].replace("$__rate_interval", "5m")
            found[f"dashboard {panel['id']}{target['refId']} {panel['title']}"] = text
    return found


def parsed(text: str) -> Any:
    """The tree of an expression. Raises: ValueError if it is no PromQL."""
    return promql_parser.parse(text)


def named(expr: Any) -> set[str]:
    """The names of the series that an expression asks for."""
    return {str(one.name) for one in selectors(expr)}


def selectors(expr: Any) -> Iterator[VectorSelector]:
    """The series that an expression asks for."""
    if isinstance(expr, VectorSelector):
        yield expr
    elif isinstance(expr, MatrixSelector):
        yield expr.vector_selector
    for inner in _parts(expr):
        yield from selectors(inner)


def aggregations(expr: Any) -> Iterator[tuple[set[str], Any]]:
    """The labels by which an expression aggregates, with what is aggregated."""
    if isinstance(expr, AggregateExpr) and expr.modifier is not None:
        yield set(expr.modifier.labels), expr.expr
    for inner in _parts(expr):
        yield from aggregations(inner)


def _parts(expr: Any) -> list[Any]:
    if isinstance(expr, BinaryExpr):
        return [expr.lhs, expr.rhs]
    if isinstance(expr, Call):
        return list(expr.args)
    return [expr.expr] if hasattr(expr, "expr") else []
