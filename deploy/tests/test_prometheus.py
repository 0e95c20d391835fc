"""Rules and alerts ask for metrics that exist, fire when they should, and have a runbook."""

import re
from pathlib import Path

import pytest
import yaml
from django.conf import settings
from django.core.management import get_commands

from compliance.core.environments import Environment
from compliance.observing.tests import catalogue
from deploy.tests import promql
from deploy.tests.programs import output_of, program
from deploy.tests.promql import ADDED, ALERTS, PROMETHEUS, RULES

RUNBOOKS = Path(settings.BASE_DIR) / "docs/runbooks.md"
TESTS = sorted(PROMETHEUS.glob("*.tests.yml"))
EXPRESSIONS = promql.expressions()
RECORDED: set[str] = {rule["record"] for path in RULES for rule in promql.rules_of(path)}
WINDOWED = re.compile(r"compliance:[a-z_]+:ratio_rate\w+")
VALUES = {
    "environment": {one.value for one in Environment},
    "outcome": {"ok", "error", "succeeded", "failed"},
    "band": {"low", "medium", "high"},
    "class": {"2xx", "3xx", "4xx", "5xx"},
}
"""What labels may be compared with, where the values are few."""


def labels_of(name: str) -> set[str]:
    """The labels of a series, those that Prometheus adds included."""
    if name in RECORDED:
        return {"slo"} | ADDED
    return ADDED | (set() if name == "up" else catalogue.series()[name])


@pytest.mark.parametrize("where", EXPRESSIONS)
def test_expression_names_what_exists(where: str) -> None:
    tree = promql.parsed(EXPRESSIONS[where])

    for selector in promql.selectors(tree):
        name = str(selector.name)
        for matcher in selector.matchers.matchers:
            assert matcher.name in labels_of(name)
            if matcher.name == "le":
                assert matcher.value in catalogue.bounds()[name]
            elif matcher.name in VALUES and "$" not in matcher.value:
                assert matcher.value in VALUES[matcher.name]
    for kept, inner in promql.aggregations(tree):
        assert kept <= set.union(*map(labels_of, promql.named(inner)))


def test_every_metric_is_looked_at() -> None:
    asked = {name for text in EXPRESSIONS.values() for name in promql.named(promql.parsed(text))}

    unseen = [
        name
        for name in catalogue.documented_names()
        if not asked & {name, f"{name}_bucket", f"{name}_count", f"{name}_sum"}
    ]

    assert unseen == []


def test_recorded_shares_are_all_in_use() -> None:
    used = {name for text in EXPRESSIONS.values() for name in WINDOWED.findall(text)}

    assert used == RECORDED


def test_each_alert_has_its_section_and_each_section_its_alert() -> None:
    sections = re.findall(r"^## (\w+)$", RUNBOOKS.read_text(), re.MULTILINE)
    names = {rule["alert"] for rule in promql.alerts()}

    assert sorted(sections) == sorted(names)
    for rule in promql.alerts():
        assert rule["annotations"]["runbook_url"] == f"docs/runbooks.md#{rule['alert'].lower()}"
        assert rule["labels"]["severity"] in ("page", "ticket")


def test_sections_say_what_it_means_and_what_to_do() -> None:
    _, *sections = re.split(r"^## ", RUNBOOKS.read_text(), flags=re.MULTILINE)

    for section in sections:
        for part in ("**Means.**", "**Look.**", "**Do.**"):
            assert section.count(part) == 1, section.splitlines()[0]


def test_panels_that_runbooks_name_exist() -> None:
    _, _, sections = RUNBOOKS.read_text().partition("\n## ")
    titles = [panel["title"] for panel in promql.panels() if panel["type"] != "row"]

    named = {" ".join(name.split()) for name in re.findall(r"(?<!\*)\*([A-Z][^*]+)\*(?!\*)", sections)}

    assert named
    assert [one for one in named if not any(f"{title},".startswith(f"{one},") for title in titles)] == []


def test_commands_of_the_runbooks_exist() -> None:
    named = set(re.findall(r"manage\.py ([a-z_]+)", RUNBOOKS.read_text()))

    assert named
    assert named <= set(get_commands())


def test_every_alert_is_tested_to_fire() -> None:
    fired = {
        case["alertname"]
        for path in TESTS
        for group in yaml.safe_load(path.read_text())["tests"]
        for case in group.get("alert_rule_test", ())
        if case["exp_alerts"]
    }

    assert fired == {rule["alert"] for rule in promql.alerts()}


@pytest.mark.parametrize("path", [*RULES, *ALERTS], ids=lambda path: path.name)
def test_prometheus_takes_the_rules(path: Path) -> None:
    output_of(program("promtool"), "check", "rules", "--lint-fatal", str(path))


def test_prometheus_takes_the_example(tmp_path: Path) -> None:
    for path in (*RULES, *ALERTS):
        (tmp_path / path.name).write_text(path.read_text())
    token = tmp_path / "token"
    token.write_text("secret")
    text = (PROMETHEUS / "prometheus.yml").read_text()
    (tmp_path / "prometheus.yml").write_text(
        text.replace("/etc/prometheus/agentid-metrics-token", str(token))
    )

    output_of(program("promtool"), "check", "config", str(tmp_path / "prometheus.yml"))


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_alerts_fire_when_they_should(path: Path) -> None:
    output_of(program("promtool"), "test", "rules", str(path))
