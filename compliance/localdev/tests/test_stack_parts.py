"""Parts of the stack that need no server: what is installed, who waits for whom, what failures say."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compliance.localdev.console import exit_code
from compliance.localdev.install import fingerprint
from compliance.localdev.layout import Layout
from compliance.localdev.stack import Stack
from compliance.localdev.state import locked
from compliance.tests.waiting import eventually


def test_changed_requirements_change_the_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x==1")
    (tmp_path / "b.txt").write_text("y==1")
    before = fingerprint(["a.txt", "b.txt"], tmp_path)

    (tmp_path / "b.txt").write_text("y==2")

    assert fingerprint(["a.txt", "b.txt"], tmp_path) != before
    assert fingerprint(["a.txt"], tmp_path) != fingerprint(["b.txt"], tmp_path)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_folder_that_cannot_be_written_is_told_with_a_way_out(
    capsys: pytest.CaptureFixture[str], number: int
) -> None:
    def write() -> None:
        raise OSError(number, os.strerror(number), "/srv/.local/run/up.lock")

    assert exit_code(write) == 1

    failed, remedy = capsys.readouterr().err.strip().splitlines()
    assert failed == f"Failed: /srv/.local/run/up.lock cannot be used: {os.strerror(number)}"
    assert "LOCAL_DIR" in remedy


def test_stop_waits_for_a_start_that_is_under_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layout = Layout(local=tmp_path)
    layout.prepare()

    with ThreadPoolExecutor(1) as pool:
        with locked(layout.up_lock):
            stopped = pool.submit(Stack(layout).down)
            assert eventually(lambda: "another ./run is starting" in capsys.readouterr().err)
            assert not stopped.done()
        assert stopped.result(60) is False
