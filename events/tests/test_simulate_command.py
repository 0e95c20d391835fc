"""`backtest_risk --from-database`: what it prints, what it refuses, and that a killed run can be resumed."""

import io
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connections

from certificates.tests.factories import make_certified_agent
from compliance.tenancy.tests.factories import make_tenant
from events.tests.conftest import World
from events.tests.factories import make_event
from events.tests.simulated import high_events, minutes

COMMAND = ("backtest_risk", "--from-database")


def simulate(world: World, *arguments: Any) -> str:
    out = io.StringIO()
    given = map(str, arguments)
    call_command(*COMMAND, "--tenant", str(world.tenant.id), *given, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def candidate(folder: Path, **changes: Any) -> Path:
    file = folder / "candidate.json"
    file.write_text(json.dumps(changes))
    return file


def test_past_revocations_are_checked_in_words(world: World) -> None:
    high_events(world.agent, 0, 10, 14)

    lines = simulate(world).splitlines()

    assert "revocations reproduced: 1 of 1" in lines
    assert f"agent={world.agent.id}  fate=same" in lines[-1]
    assert "why=reported_unauthorized" in lines[-1]


def test_a_candidate_and_a_period_are_read(world: World, tmp_path: Path) -> None:
    high_events(world.agent, 0, 10, 14)
    file = candidate(tmp_path, strikes=2)

    whole = json.loads(simulate(world, "--candidate", file, "--json"))
    part = json.loads(
        simulate(world, "--since", "2026-05-01T12:12", "--until", "2026-05-02T00:00Z", "--json")
    )

    assert whole["counts"]["earlier"]["unreviewed"] == 1
    assert (part["recorded"], part["reproduced"]) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "--tenant"),
        (("--tenant", "x"), 2, "--tenant"),
        (("--tenant", "01a20635-d035-74f4-a21f-09c8194f6fe8"), 3, "Tenant"),
        (("--tenant", "KNOWN", "--since", "yesterday"), 2, "--since"),
        (("--tenant", "KNOWN", "--since", "2026-13-01T00:00"), 2, "--since"),
        (("--tenant", "KNOWN", "--since", "2096-01-01T00:00Z"), 2, "period"),
        (("--tenant", "KNOWN", "--resume"), 2, "--checkpoint"),
        (("--tenant", "KNOWN", "--candidate", "/nowhere/at.all"), 2, "nowhere"),
    ],
)
def test_what_makes_no_sense_is_refused(
    world: World, arguments: tuple[str, ...], code: int, words: str
) -> None:
    said, given = io.StringIO(), [str(world.tenant.id) if one == "KNOWN" else one for one in arguments]

    with pytest.raises(SystemExit) as caught:
        call_command(*COMMAND, *given, stderr=said)

    assert caught.value.code == code
    assert words in said.getvalue()


def test_a_file_or_the_database_must_be_named() -> None:
    said = io.StringIO()

    with pytest.raises(SystemExit) as caught:
        call_command("backtest_risk", stderr=said)

    assert caught.value.code == 2
    assert "--from-database" in said.getvalue()


def test_a_checkpoint_of_another_candidate_is_refused(world: World, tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    file.write_bytes(b"nonsense")
    said = io.StringIO()

    with pytest.raises(SystemExit):
        call_command(
            *COMMAND, "--tenant", str(world.tenant.id), "--resume", "--checkpoint", str(file), stderr=said
        )

    assert "unreadable" in said.getvalue()


@pytest.mark.parametrize(
    "changes",
    [{"strikes": 2, "rescore": True}, pytest.param({"strikes": 2}, marks=pytest.mark.drill)],
)
def test_a_killed_run_goes_on_and_ends_like_one_that_was_not(
    committed: None, tmp_path: Path, changes: dict[str, Any]
) -> None:
    agent = make_certified_agent(make_tenant())
    for number in range(20):
        make_event(agent, details={"tool": f"t{number % 3}"}, received_at=minutes(number))
    high_events(agent, 30, 60, 90, 120, 150, 180, 210, 240, 242, 244)
    checkpoint = tmp_path / "checkpoint"
    arguments = [
        "--json",
        "--tenant",
        str(agent.tenant_id),
        "--candidate",
        str(candidate(tmp_path, **changes)),
    ]
    resumable = [*arguments, "--checkpoint", str(checkpoint), "--resume"]

    killed = _alone(2, *resumable)
    was_kept = checkpoint.exists()
    resumed, whole = _alone(0, *resumable), _alone(0, *arguments)

    assert (killed.returncode, killed.stdout, was_kept) == (-signal.SIGKILL, "", True)
    assert "100%" in resumed.stderr
    assert _found(resumed) == _found(whole)
    assert _found(whole)["counts"]["earlier"]["unreviewed"] == 1
    assert not checkpoint.exists()


def _alone(step: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    database = connections["default"].settings_dict["NAME"]
    command = [sys.executable, "-m", "events.tests.replay_alone", database, str(step), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _found(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    del found["order"]["until"]
    return found
