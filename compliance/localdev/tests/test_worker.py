"""Workers of pytest-xdist take tests by their groups."""

import json
import os
import subprocess
import sys
from pathlib import Path

from django.conf import settings

TESTS = """
import os
import pytest

@pytest.mark.xdist_group("%s")
@pytest.mark.parametrize("number", range(5))
def test_note_the_worker(number):
    with open("%s", "a") as noted:
        noted.write(os.environ["PYTEST_XDIST_WORKER"])
"""


def test_tests_of_a_group_run_on_one_worker(tmp_path: Path) -> None:
    """The first tests are shared out in turn unless the groups reach pytest-xdist."""
    for name in ("one", "other"):
        (tmp_path / f"test_{name}.py").write_text(TESTS % (name, tmp_path / name))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-n2", "--dist=loadgroup", "-p", "no:django"]
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {
        **own,
        "PYTHONPATH": str(settings.BASE_DIR),
        "PYTEST_PLUGINS": "compliance.localdev.worker",
        "TEST_WORKERS": json.dumps([{}, {}]),
    }

    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=120)

    noted = [(tmp_path / name).read_text() for name in ("one", "other")]
    assert sorted(noted) == ["gw0" * 5, "gw1" * 5]
