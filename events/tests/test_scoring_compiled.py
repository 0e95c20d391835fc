"""The compiled scorer says what it says as Python, to the last bit, and is only used while it is fresh."""

import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.conf import settings

from events.checks import check_compiled
from events.risk import compiling
from events.risk.compiling import (
    CannotCompile,
    compile_in_background,
    compile_scorer,
    find_compiler,
    runs_compiled,
    with_compiled,
)
from events.risk.scoring.contract import PRIORS
from events.tests.scored_stream import stream


def can_compile() -> bool:
    try:
        find_compiler()
    except CannotCompile:
        return False
    return True


needs_compiler = pytest.mark.skipif(not can_compile(), reason="there is no C compiler")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of one small module in place of the scorer."""
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "share.py").write_text("def half(x: float) -> float:\n    return x / 2\n")
    (folder / "share.pxd").write_text("cpdef double half(double x)\n")
    monkeypatch.setattr(compiling, "ROOT", tmp_path)
    monkeypatch.setattr(compiling, "PACKAGE", folder)
    monkeypatch.delenv("COMPILED", raising=False)
    return folder


def is_compiled(package: Path) -> bool:
    return runs_compiled(with_compiled([str(package)]))


def said(compiled: str) -> tuple[list[str], str]:
    """What a process of its own says of the stream: the package's path, and the digest."""
    done = subprocess.run(
        [sys.executable, "-m", "events.tests.scored_stream"],
        cwd=settings.BASE_DIR,
        env={**os.environ, "COMPILED": compiled},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    return found["path"], found["digest"]


def test_stream_has_all_types() -> None:
    assert Counter(event.action_type for _, event in stream()).keys() == PRIORS.keys()


@needs_compiler
def test_compiled_and_interpreted_scorer_say_the_same() -> None:
    compile_scorer()

    with ThreadPoolExecutor(2) as pool:
        (compiled, digest), (interpreted, expected) = pool.map(said, ["1", "0"])

    assert runs_compiled(compiled)
    assert not runs_compiled(interpreted)
    assert digest == expected


@needs_compiler
def test_process_that_scores_does_not_import_cython() -> None:
    compile_scorer()
    program = "import sys; from events.risk import scoring; print([n for n in sys.modules if 'ython' in n])"

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=settings.BASE_DIR, capture_output=True, text=True, check=True
    )

    assert "Cython" not in done.stdout
    assert "'cython'" not in done.stdout


@needs_compiler
def test_edited_source_runs_interpreted_until_compiled_again(package: Path) -> None:
    """One walk: to compile takes seconds."""
    assert compile_scorer()
    assert is_compiled(package)
    assert not compile_scorer()
    assert not compile_in_background()

    for name in ("share.pxd", "share.py"):
        original = (package / name).read_text()
        (package / name).write_text(f"{original}# edited\n")
        assert not is_compiled(package)
        (package / name).write_text(original)
        assert is_compiled(package)

    (package / "share.py").write_text(f"{original}# edited\n")
    assert compile_scorer()
    assert is_compiled(package)
    assert len(list((package / "__pycache__").iterdir())) == 1  # the earlier build is gone


@needs_compiler
def test_failed_build_says_why_and_leaves_nothing(package: Path) -> None:
    (package / "share.py").write_text("HALF: int = nobody_knows_this\n")

    with pytest.raises(CannotCompile, match="undeclared name"):
        compile_scorer()

    assert not is_compiled(package)
    assert list((package / "__pycache__").iterdir()) == []


def test_without_a_compiler_it_says_what_to_install(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(package))
    monkeypatch.delenv("CC", raising=False)

    with pytest.raises(CannotCompile, match=r"apt-get install gcc python3-dev"):
        compile_scorer()

    assert not is_compiled(package)


@pytest.mark.parametrize(("compiled", "found"), [(True, []), (False, ["events.W002"])])
def test_check_of_a_deployment_warns_of_an_interpreted_scorer(
    compiled: bool, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = "/events/risk/scoring"
    path = [f"{folder}/__pycache__/compiled-0{folder}", folder] if compiled else [folder]
    monkeypatch.setattr("events.risk.scoring.__path__", path)

    assert [message.id for message in check_compiled()] == found
