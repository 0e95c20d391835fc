"""What a person at the terminal is told of compiling."""

from pathlib import Path

import pytest

from compliance.localdev.compilation import Compilation
from compliance.localdev.layout import Layout


def told(folder: Path, program: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said when the checkout's `compliance.compiling` is that program."""
    package = folder / "compliance"
    package.mkdir()
    (package / "compiling.py").write_text(program)

    with Compilation(Layout(root=folder, local=folder / ".local")) as compilation:
        compilation.wait()

    return capsys.readouterr().err


def test_nothing_is_said_when_all_was_compiled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(tmp_path, "", capsys) == ""


def test_compiling_is_a_step_with_its_seconds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(tmp_path, "print('a.package: a, b')", capsys).startswith("  ✓ compiled modules  ")


def test_what_can_not_be_compiled_is_told_and_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(tmp_path, "raise SystemExit('no C compiler')", capsys) == "  ! no C compiler\n"


def test_compiling_ends_with_a_step_that_fails(tmp_path: Path) -> None:
    (tmp_path / "compliance").mkdir()
    (tmp_path / "compliance/compiling.py").write_text("import time; time.sleep(600)")
    compilation = Compilation(Layout(root=tmp_path, local=tmp_path / ".local"))

    with pytest.raises(LookupError), compilation:
        raise LookupError

    assert compilation.process.returncode != 0
