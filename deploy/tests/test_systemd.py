import os
import re
import shutil
from pathlib import Path

import pytest

from deploy.tests.programs import DEPLOY, output_of, program

UNITS = sorted(path.name for path in (DEPLOY / "systemd").glob("*.service"))
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

    ours = re.compile(rf"{unit.partition('@')[0]}|sandbox\.conf")
    assert [line for line in said.splitlines() if ours.search(line)] == []


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


def test_all_but_the_migration_are_started_again() -> None:
    texts = {unit: (DEPLOY / "systemd" / unit).read_text() for unit in UNITS}

    assert [unit for unit, text in texts.items() if "Restart=always" not in text] == [
        "agentid-migrate.service"
    ]
    # A drop-in would win over the migration's unit, and over those of operators' commands.
    assert "Restart=" not in (DEPLOY / "systemd/agentid-.service.d/sandbox.conf").read_text()


def test_exposure_is_measured_with_the_sandbox_alone(units: Path) -> None:
    analyze = program("systemd-analyze")
    shutil.rmtree(units / "agentid-.service.d")

    said = output_of(
        *(analyze, "security", "--offline=true", "--no-pager", "./agentid-web.service"),
        cwd=units,
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{units}:"},
    )

    exposure = re.search(r"Overall exposure level for \S+: ([0-9.]+)", said)
    assert exposure is not None
    assert float(exposure[1]) > 5
