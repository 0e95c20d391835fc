"""What an installation needs follows from what operations cost."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.capacity.__main__ import WORKLOAD, read
from bench.capacity.measuring import middle_of
from bench.capacity.model import (
    BATCHED,
    CERTIFICATE,
    EVENT,
    EXTRAPOLATED,
    KEY,
    KEY_HOST,
    LOOP,
    POOLED,
    POSTGRES,
    VALKEY,
    VERIFICATION,
    WORKER,
    Cost,
    Costs,
    Workload,
    busy_processors,
    ceilings,
    plan,
    plans,
)
from bench.capacity.tables import BEGIN, END, MEASURED_FILE, block, document, text
from compliance.localdev.console import StepFailed
from compliance.localdev.layout import ROOT

COSTS = Costs(
    operations={
        EVENT: {1: Cost({LOOP: 40.0, POSTGRES: 30.0}, 800.0), 4: Cost({LOOP: 50.0, POSTGRES: 25.0}, 900.0)},
        BATCHED: {1: Cost({LOOP: 10.0, POSTGRES: 15.0}, 700.0)},
        POOLED: {1: Cost({WORKER: 15.0, POSTGRES: 10.0}, 1.0)},
        VERIFICATION: {1: Cost({LOOP: 20.0})},
        CERTIFICATE: {1: Cost({KEY_HOST: 2_000.0}, 10_000.0)},
        KEY: {1: Cost({KEY_HOST: 200_000.0})},
    },
    event_disk=700.0,
    agent_disk=12_000.0,
    agent_state=2_000.0,
    event_archived=100.0,
)
QUIET = Workload(verifications=0.0, deliveries=0.0, agents=0)


def test_dearest_number_of_processes_counts() -> None:
    assert COSTS.of(EVENT, LOOP) == 50.0
    assert COSTS.of(EVENT, POSTGRES) == 30.0
    assert COSTS.wal(EVENT) == 900.0


def test_what_was_not_measured_costs_nothing() -> None:
    assert COSTS.of("delivery", LOOP) == COSTS.wal("delivery") == 0.0


def test_processors_are_rates_times_costs() -> None:
    singly = replace(QUIET, events=100_000.0)

    assert busy_processors(COSTS, singly, LOOP) == pytest.approx(5.0)
    assert busy_processors(COSTS, singly, POSTGRES) == pytest.approx(4.0)
    assert busy_processors(COSTS, replace(singly, batched=1.0), LOOP) == pytest.approx(1.0)
    assert busy_processors(COSTS, replace(singly, verifications=1e5), LOOP) == pytest.approx(7.0)


def test_processors_are_busy_only_in_part() -> None:
    half = plan(COSTS, replace(QUIET, utilisation=0.5))

    assert half.value("processors, web loop") == pytest.approx(10.0)


def test_each_agent_is_certified_once_a_year() -> None:
    yearly = Workload(agents=365 * 86_400, events=0.0, verifications=0.0)

    assert yearly.certificates == pytest.approx(1.0)
    assert busy_processors(COSTS, yearly, KEY_HOST) == pytest.approx(0.202)


def test_valkey_primaries_are_whole() -> None:
    busy = replace(COSTS, operations={EVENT: {1: Cost({VALKEY: 20.0})}})

    assert plan(busy, QUIET).value("Valkey primaries") == 4
    assert plan(COSTS, QUIET).value("Valkey primaries") == 1


def test_web_workers_are_shared_by_the_nodes_and_rounded_up() -> None:
    found = plan(COSTS, replace(QUIET, nodes=4, utilisation=0.5))

    assert found.value("web workers of a node") == 3
    assert found.value("PostgreSQL connections at most") == 2 * (4 * 3 * (8 + 21) + 4 * 16)


def test_logs_and_disks_follow_from_bytes() -> None:
    found = plan(COSTS, replace(QUIET, hot_days=2.0, kept_days=12.0))

    assert found.value("write-ahead log") == pytest.approx(90.1)
    assert found.value("events on disk a day") == pytest.approx(6.048)
    assert found.value("hot events") == pytest.approx(12.096)
    assert found.value("cold events") == pytest.approx(8.64)


def test_agents_take_disk_and_memory() -> None:
    found = plan(COSTS, Workload(agents=1_000_000))

    assert found.value("agents on disk") == pytest.approx(12.0)
    assert found.value("Valkey memory") == pytest.approx(2.0)


def test_what_ends_first_stops_one_database() -> None:
    workload = replace(QUIET, writer_processors=4.0, utilisation=0.5, writer_wal_mb=901.0)

    found = {one.name: one.events for one in ceilings(COSTS, workload)}

    assert found["the writer's processors"] == pytest.approx(50_000)
    assert found["the writer's log"] == pytest.approx(1_000_000)
    assert found[f"one task: {POOLED}"] == pytest.approx(30_000)
    assert plan(COSTS, workload).first_ceiling.events == pytest.approx(30_000)


def test_unmeasured_costs_set_no_ceiling() -> None:
    bare = replace(COSTS, operations={EVENT: {1: Cost({POSTGRES: 30.0}, 800.0)}})

    names = [one.name for one in ceilings(bare, QUIET)]

    assert names == ["the writer's processors", "the writer's log"]


def test_derived_figures_say_that_they_are_extrapolated() -> None:
    found = plan(COSTS, Workload())

    assert {one.basis for one in found.figures} == {one.basis for one in found.ceilings} == {EXTRAPOLATED}


def test_tables_tell_measured_from_extrapolated() -> None:
    shown = text(COSTS, plans(COSTS, Workload()))

    assert "processor time, µs, measured" in shown
    assert all(EXTRAPOLATED in line for line in shown.splitlines() if line.startswith("processors, "))


def test_batched_events_have_a_plan_of_their_own() -> None:
    found = plans(COSTS, QUIET)

    assert found["singly"].value("processors, web loop") > found["in batches"].value("processors, web loop")


def test_document_gets_the_tables_and_keeps_its_text(tmp_path: Path) -> None:
    path = tmp_path / "scaling.md"
    path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    found = plans(COSTS, Workload())

    document(path, COSTS, found)
    document(path, COSTS, found)

    assert path.read_text() == f"before\n{block(COSTS, found)}\nafter\n"


def test_document_without_a_place_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scaling.md"
    path.write_text("before\n")

    with pytest.raises(StepFailed):
        document(path, COSTS, plans(COSTS, Workload()))


def test_documented_figures_follow_from_the_measured_ones() -> None:
    costs = read(ROOT / MEASURED_FILE)

    assert block(costs, plans(costs, Workload())) in (ROOT / "docs/scaling.md").read_text()


def test_file_without_figures_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "measured.json"
    path.write_text("{}")

    with pytest.raises(StepFailed):
        read(path)


def test_figures_survive_a_file() -> None:
    text = json.dumps(COSTS.as_json())

    assert Costs.from_json(json.loads(text)) == COSTS


def test_medians_are_taken_of_each_role() -> None:
    turns = [Cost({LOOP: one, POSTGRES: 2 * one}, wal) for one, wal in ((3.0, 1.0), (1.0, 9.0), (2.0, 5.0))]

    assert middle_of(turns) == Cost({LOOP: 2.0, POSTGRES: 4.0}, 5.0)


def test_every_part_of_a_workload_has_an_option() -> None:
    assert set(WORKLOAD) == set(Workload.__dataclass_fields__)
