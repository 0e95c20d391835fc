"""What an installation needs follows from what operations cost."""

import json
from dataclasses import replace

import pytest

from bench.capacity.__main__ import WORKLOAD
from bench.capacity.measuring import middle_of
from bench.capacity.model import (
    BATCHED,
    CERTIFICATE,
    EVENT,
    EXTRAPOLATED,
    KEY,
    KEY_HOST,
    LATER,
    LOOP,
    POSTGRES,
    VERIFICATION,
    WORKER,
    Cost,
    Costs,
    Workload,
    busy_processors,
    ceilings,
    plan,
)
from bench.capacity.tables import cost_table, plan_table

COSTS = Costs(
    operations={
        EVENT: {1: Cost({LOOP: 40.0, POSTGRES: 30.0}, 800.0), 4: Cost({LOOP: 50.0, POSTGRES: 25.0}, 900.0)},
        BATCHED: {1: Cost({LOOP: 10.0, POSTGRES: 15.0}, 700.0)},
        LATER: {1: Cost({WORKER: 15.0, POSTGRES: 10.0}, 1.0)},
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


def test_web_workers_are_shared_by_the_nodes_and_rounded_up() -> None:
    found = plan(COSTS, replace(QUIET, nodes=4, utilisation=0.5))

    assert found.value("web workers of a node") == 3
    assert found.value("PostgreSQL connections at most") == 2 * (4 * 3 * (8 + 11) + 4 * 16)


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


def test_writer_is_stopped_by_what_ends_first() -> None:
    workload = replace(QUIET, writer_processors=4.0, utilisation=0.5, writer_wal_mb=901.0)

    found = {one.name: one.events for one in ceilings(COSTS, workload)}

    assert found["processors of the writer"] == pytest.approx(50_000)
    assert found["write-ahead log of the writer"] == pytest.approx(1_000_000)
    assert found["sums and baselines, one task at a time"] == pytest.approx(40_000)
    assert plan(COSTS, workload).writer_point.events == pytest.approx(40_000)


def test_unmeasured_costs_set_no_ceiling() -> None:
    bare = replace(COSTS, operations={EVENT: {1: Cost({POSTGRES: 30.0}, 800.0)}})

    names = [one.name for one in ceilings(bare, QUIET)]

    assert names == ["processors of the writer", "write-ahead log of the writer"]


def test_derived_figures_say_that_they_are_extrapolated() -> None:
    found = plan(COSTS, Workload())

    assert {one.basis for one in (*found.figures, *found.ceilings)} == {EXTRAPOLATED}
    assert any(EXTRAPOLATED in line for line in plan_table(found))
    assert any("measured" in line for line in cost_table(COSTS))


def test_figures_survive_a_file() -> None:
    text = json.dumps(COSTS.as_json())

    assert Costs.from_json(json.loads(text)) == COSTS


def test_medians_are_taken_of_each_role() -> None:
    turns = [Cost({LOOP: one, POSTGRES: 2 * one}, wal) for one, wal in ((3.0, 1.0), (1.0, 9.0), (2.0, 5.0))]

    assert middle_of(turns) == Cost({LOOP: 2.0, POSTGRES: 4.0}, 5.0)


def test_every_part_of_a_workload_has_an_option() -> None:
    assert set(WORKLOAD) == set(Workload.__dataclass_fields__)
