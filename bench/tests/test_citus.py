"""What `./run bench citus` makes of what it measures."""

from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from bench.citus.__main__ import main
from bench.citus.conversation import conversation
from bench.citus.costs import FLOOR, FORMS, Costs, Form
from bench.citus.ground import CITUS, PLAIN, Ground
from bench.citus.moving import Moving
from bench.citus.request_costs import ARRIVALS, RequestCosts, Turn
from compliance.core.identifiers import new_id_at
from compliance.localdev.layout import find_layout
from compliance.localdev.servers.citus import BUILD, citus_build
from compliance.localdev.servers.servers import Servers


def ground(folder: Path) -> Ground:
    return Ground(Servers(find_layout()), folder, citus_build() or folder / "install", 4)


def test_nothing_is_measured_without_a_build(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(BUILD, raising=False)

    assert main([]) == 0
    assert f"skipped: {BUILD} names no build of Citus" in capsys.readouterr().err


def test_forms_have_about_as_many_events() -> None:
    assert [form.groups(2_000) for form in FORMS] == [2_000, 400, 200, 40, 2]
    assert Form("large", 1, 5_000).groups(2_000) == 1


def test_ratio_is_of_medians(tmp_path: Path) -> None:
    costs = Costs(ground(tmp_path), {}, {}, events=1, turns=3)
    costs.found = {("single", PLAIN): [90.0, 100.0, 500.0], ("single", CITUS): [150.0, 140.0, 900.0]}

    assert costs.ratio("single") == 1.5
    assert any(line.split() == ["single", "100", "150", "1.50"] for line in costs.lines())


def test_requests_are_compared_turn_by_turn(tmp_path: Path) -> None:
    name = ARRIVALS[0].name
    costs = RequestCosts(ground(tmp_path), {}, seconds=1, turns=2)
    plain = [Turn([100.0, 50.0, 10.0], rate=500, group=2), Turn([300.0, 90.0, 10.0], rate=500, group=2)]
    citus = [Turn([100.0, 80.0, 12.0], rate=500, group=2), Turn([330.0, 90.0, 20.0], rate=500, group=4)]
    costs.found = {
        (one.name, kind): turns for one in ARRIVALS for kind, turns in ((PLAIN, plain), (CITUS, citus))
    }

    assert costs.ratios(name) == [1.2, 1.1]
    assert costs.database_ratios(name) == [1.6, 1.0]
    assert [line.split()[:2] for line in costs.lines() if CITUS in line] == [
        ["500", "events/s"],
        ["64", "clients,"],
    ]
    assert "1.15 [1.10, 1.20]" in costs.lines()[3]
    assert "1.30 [1.00, 1.60]" in costs.lines()[3]


def test_ids_are_of_their_moment() -> None:
    at = datetime(2026, 5, 1, tzinfo=UTC)

    made = UUID(new_id_at(at))

    assert made.version == 7
    assert made.int >> 80 == int(at.timestamp() * 1_000)


@pytest.mark.slow
@pytest.mark.skipif(citus_build() is None, reason=f"{BUILD} names no build of Citus")
@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_events_are_measured_and_survive_a_move(tmp_path: Path) -> None:
    place = ground(tmp_path / "citus")

    with place.started(), conversation(place, PLAIN) as plain, conversation(place, CITUS) as citus:
        children = {PLAIN: plain, CITUS: citus}
        tenants = {kind: child.ask("fill", 5, 1) for kind, child in children.items()}
        costs = Costs(place, children, tenants, events=20, turns=1)
        costs.measure()
        callers = {kind: child.ask("callers") for kind, child in children.items()}
        requests = RequestCosts(place, callers, seconds=0.5, turns=1)
        requests.measure()
        moving = Moving(place, citus, "force_logical", 0.2)
        moving.run(*tenants[CITUS][:2])

    assert costs.figure(FLOOR, CITUS) > costs.figure(FLOOR, PLAIN) > 0
    assert all(cost > 0 for turns in requests.found.values() for turn in turns for cost in turn.costs[:2])
    assert all(turn.group >= 1 for turns in requests.found.values() for turn in turns)
    assert moving.is_held
    assert all(one["sent"] for one in moving.sent.values())
