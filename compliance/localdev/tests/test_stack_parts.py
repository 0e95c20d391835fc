"""The small decisions in starting the parts and servers."""

from itertools import pairwise
from pathlib import Path

import pytest

from compliance.localdev.servers.redis import quoted
from compliance.localdev.servers.supervisor import commands
from compliance.localdev.setup.install import fingerprint
from compliance.localdev.status import PartStatus, as_table
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


def test_a_folders_name_is_quoted_for_valkey() -> None:
    assert quoted('/a "b" \\c') == '"/a \\"b\\" \\\\c"'


def test_status_shows_one_line_for_each_part() -> None:
    table = as_table(
        [
            PartStatus("web", up=True, pid=7, where="http://x"),
            PartStatus("beat", up=False, pid=None, where=""),
        ]
    )

    first, second = table.splitlines()

    assert first.startswith("✓ web")
    assert "pid 7" in first
    assert second.startswith("✗ beat")
