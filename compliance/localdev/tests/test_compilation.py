"""What a person at the terminal reads about compiling."""

from pathlib import Path

import pytest

from compliance.localdev.layout import Layout
from compliance.localdev.stack import compile_scorer


@pytest.fixture(autouse=True)
def compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COMPILED", raising=False)


def told(folder: Path, program: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said when the checkout's `events.risk.compiling` is that program."""
    package = folder / "events" / "risk"
    package.mkdir(parents=True)
    (package / "compiling.py").write_text(program)

    compile_scorer(Layout(root=folder, local=folder / ".local"))

    return capsys.readouterr().err


def test_failure_to_compile_is_told_and_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(tmp_path, "raise SystemExit('no C compiler')", capsys) == "  ! no C compiler\n"


def test_nothing_is_compiled_that_is_not_to_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPILED", "0")

    assert told(tmp_path, "print('compiled')", capsys) == ""
