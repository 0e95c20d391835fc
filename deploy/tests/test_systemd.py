import os
import re
import shutil
from pathlib import Path

import pytest

from deploy.tests.programs import DEPLOY, output_of, program

UNITS = sorted(path.name for path in (DEPLOY / "systemd").glob("*.service"))
TIMERS = sorted(path.name for path in (DEPLOY / "systemd").glob("*.timer"))
SANDBOX = DEPLOY / "systemd/agentid-.service.d/10-sandbox.conf"
HSM = DEPLOY / "systemd/agentid-key-.service.d/20-hsm.conf"
OF_THE_HSM = ("pkcs11-live-pin", "pkcs11-test-pin", "/etc/agentid/hsm.env")
MOST_EXPOSED = 2.5


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """A copy of the units whose programs exist: systemd-analyze demands that."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("celery", "gunicorn", "python"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    copied = tmp_path / "units"
    shutil.copytree(DEPLOY / "systemd", copied)
    for unit in copied.glob("*.service"):
        unit.write_text(unit.read_text().replace("/opt/service/venv/bin", str(programs)))
    return copied


def instance(unit: str) -> str:
    return unit.replace("@.", "@0.")


@pytest.mark.parametrize("unit", UNITS)
def test_unit_is_valid(units: Path, unit: str) -> None:
    analyze = program("systemd-analyze")

    said = output_of(analyze, "verify", "--man=no", "--recursive-errors=no", f"./{instance(unit)}", cwd=units)

    ours = re.compile(rf"{unit.partition('@')[0]}|10-sandbox\.conf|20-hsm\.conf")
    assert [line for line in said.splitlines() if ours.search(line)] == []


@pytest.mark.parametrize("timer", TIMERS)
def test_timer_is_valid_and_stops_with_the_service(units: Path, timer: str) -> None:
    analyze = program("systemd-analyze")

    said = output_of(
        *(analyze, "verify", "--man=no", "--recursive-errors=no", f"./{instance(timer)}"), cwd=units
    )

    text = (units / timer).read_text()
    assert [line for line in said.splitlines() if timer.partition(".")[0] in line] == []
    assert "PartOf=agentid.target" in text
    assert "WantedBy=agentid.target" in text
    assert (units / timer.replace(".timer", ".service")).exists()


def test_last_verification_is_kept_where_commands_and_units_write() -> None:
    assert "AUDIT_VERIFIED_FILE=/var/lib/agentid/verified.json" in SANDBOX.read_text()
    assert "StateDirectory=agentid " in SANDBOX.read_text()


@pytest.mark.parametrize("unit", UNITS)
def test_unit_is_sandboxed(units: Path, unit: str) -> None:
    analyze = program("systemd-analyze")

    said = output_of(
        *(analyze, "security", "--offline=true", "--no-pager", f"./{instance(unit)}"),
        cwd=units,
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{units}:"},
    )

    exposure = re.search(r"Overall exposure level for \S+: ([0-9.]+)", said)
    assert exposure is not None
    assert float(exposure[1]) <= MOST_EXPOSED


def test_all_but_the_migration_and_checks_are_started_again() -> None:
    texts = {unit: (DEPLOY / "systemd" / unit).read_text() for unit in UNITS}

    once = [unit for unit, text in texts.items() if "Restart=always" not in text]
    assert once == ["agentid-audit-verify.service", "agentid-crl-check@.service", "agentid-migrate.service"]
    assert all("Type=oneshot" in texts[unit] for unit in once)
    # A drop-in would win over the migration's unit, and over those of operators' commands.
    assert "Restart=" not in SANDBOX.read_text()


def test_only_units_of_keys_have_the_pins_and_the_tokens() -> None:
    texts = {path.name: path.read_text() for path in (DEPLOY / "systemd").rglob("*.*") if path.is_file()}

    for secret in OF_THE_HSM:
        assert [name for name, text in texts.items() if secret in text] == [HSM.name]
    assert "InaccessiblePaths=/var/lib/agentid/tokens\n" in SANDBOX.read_text()
    assert "InaccessiblePaths=\n" in HSM.read_text()
    # systemd reads drop-ins by their names, and `systemctl edit` makes override.conf.
    assert sorted([HSM.name, "override.conf", SANDBOX.name]) == [SANDBOX.name, HSM.name, "override.conf"]


def test_processes_may_lower_their_priority() -> None:
    # The process of the views does, and ends if it can't.
    filters = [line for line in SANDBOX.read_text().splitlines() if line.startswith("SystemCallFilter=")]

    assert filters.index("SystemCallFilter=setpriority") > filters.index(
        "SystemCallFilter=~@privileged @resources"
    )


def test_operators_command_opens_the_hsm_only_when_it_is_asked_to(tmp_path: Path) -> None:
    (tmp_path / "systemd-run").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "systemd-run").chmod(0o755)
    script = str(DEPLOY / "systemd/agentid-run")
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}

    usual = output_of(script, "tenant_create", "--name", "Two $words", env=environment).splitlines()
    opening = output_of(script, "--hsm", "ca_init", env=environment).splitlines()

    assert any(re.fullmatch(r"--unit=agentid-command-\d+", word) for word in usual)
    assert usual[-4:] == ["manage.py", "tenant_create", "--name", "Two $$words"]
    assert "PKCS11_HOSTS=0" not in usual
    assert any(re.fullmatch(r"--unit=agentid-key-command-\d+", word) for word in opening)
    assert opening[opening.index("env") + 1] == "PKCS11_HOSTS=0"
    assert opening[-2:] == ["manage.py", "ca_init"]
