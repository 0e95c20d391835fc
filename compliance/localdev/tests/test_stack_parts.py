"""The small decisions in starting the parts and servers."""

from itertools import pairwise
from pathlib import Path

import pytest

from compliance.localdev.install import fingerprint
from compliance.localdev.servers.supervisor import commands
from compliance.localdev.testing import with_suffix

ENVIRONMENT = {"WEB_WORKERS": "3"}


def test_the_web_server_gets_its_socket_and_workers(tmp_path: Path) -> None:
    web = commands("fd://7", ENVIRONMENT)["web"]

    options = dict(pairwise(web))

    assert (options["--bind"], options["--workers"]) == ("fd://7", "3")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgres://u:p@h:5/live", "postgres://u:p@h:5/live_r1"),
        ("postgres://u:p@h/live?sslmode=require", "postgres://u:p@h/live_r1?sslmode=require"),
    ],
)
def test_a_runs_databases_have_names_of_their_own(url: str, expected: str) -> None:
    assert with_suffix(url, "r1") == expected


def test_changed_requirements_change_the_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x==1")
    (tmp_path / "b.txt").write_text("y==1")
    before = fingerprint(["a.txt", "b.txt"], tmp_path)

    (tmp_path / "b.txt").write_text("y==2")

    assert fingerprint(["a.txt", "b.txt"], tmp_path) != before
    assert fingerprint(["a.txt"], tmp_path) != fingerprint(["b.txt"], tmp_path)
