"""Modules are compiled from their Python, and what was compiled is taken while the sources are the same."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compliance.compiling import building, runs_compiled, with_compiled
from compliance.compiling.building import CannotCompile, CompilationFailed, build, find_compiler
from compliance.compiling.staging import Package

ROOT = Path(__file__).resolve().parents[3]


def can_compile() -> bool:
    try:
        find_compiler()
    except CannotCompile:
        return False
    return True


needs_compiler = pytest.mark.skipif(not can_compile(), reason="there is no C compiler")

INIT = "from compliance.compiling import with_compiled\n\n__path__ = with_compiled(__path__)\n"
TABLE = '''"""A table."""
from made.packed import (
    SIZE,
    weight_at,
)

LIMIT, OTHER = 5, 6


class Table:
    def __init__(self, names: bytes = b"", weights: bytes = b"") -> None:
        self.names = names
        self.weights = weights

    def weight(self, name: bytes) -> float:
        at = self.names.find(name)
        return -1.0 if at < 0 else weight_at(self.weights, at * SIZE)


def where() -> str:
    raise LookupError
'''
TABLE_TYPES = """cimport cython
from made.packed cimport weight_at

cdef Py_ssize_t LIMIT, OTHER

cdef class Table:
    cdef public bytes names
    cdef public bytes weights

    @cython.locals(at=Py_ssize_t)
    cpdef double weight(self, bytes name)
"""
PACKED = "SIZE = 1\n\n\ndef weight_at(weights: bytes, at: int) -> float:\n    return float(weights[at])\n"
PACKED_TYPES = """cdef inline double weight_at(bytes weights, Py_ssize_t at):
    return (<unsigned char*><char*>weights)[at] + 0.0
"""
SHARE = '''"""Shares."""
from math import exp, pi

from made.packed import weight_at
from made.table import LIMIT, Table


class Row:
    table: Table


def share(table: Table, name: bytes) -> float:
    x = table.weight(name) / 100
    return exp(x) * pi + weight_at(table.weights, 0) + LIMIT
'''
SHARE_TYPES = """cimport cython
from made.table cimport Table

@cython.locals(x=double)
cpdef double share(Table table, bytes name)
"""
PLAIN = "from made.table import Table\n\n\ndef empty() -> Table:\n    return Table()\n"
FILES = {
    "__init__.py": INIT,
    "table.py": TABLE,
    "table.pxd": TABLE_TYPES,
    "packed.py": PACKED,
    "packed.pxd": PACKED_TYPES,
    "share.py": SHARE,
    "share.pxd": SHARE_TYPES,
    "plain.py": PLAIN,
    "plain.pxd": "# Compiled as it stands.\n",
}
PROBE = """
import json, typing
import made.packed, made.plain, made.share, made.table
from made.table import Table
names = [module.__file__ for module in (made.packed, made.plain, made.share, made.table)]
print(json.dumps({
    "libraries": [name.endswith(".so") for name in names],
    "share": made.share.share(Table(b"ab", bytes([7, 9])), b"b").hex(),
    "constants": [made.table.LIMIT, made.table.OTHER],
    "same": made.share.Table is made.plain.Table is Table,
    "annotated": typing.get_type_hints(made.share.Row)["table"] is Table,
    "empty": made.plain.empty().weight(b"x"),
}))
"""


@pytest.fixture(scope="module")
def quick() -> Iterator[None]:
    """Unoptimised: the C compiler takes a quarter of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "FLAGS", (*building.FLAGS, "-O0"))
        yield


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, quick: None) -> Package:
    """A package that was built once, for tests that leave it as it is."""
    package = make_package(tmp_path_factory.mktemp("built"))
    assert build(package) == ["plain", "share", "table"]
    return package


@pytest.fixture
def changed(built: Package, tmp_path: Path) -> Package:
    """A copy of it, to change."""
    shutil.copytree(built.folder, tmp_path / "made")
    return Package("made", tmp_path / "made")


def make_package(folder: Path) -> Package:
    (folder / "made").mkdir()
    for name, text in FILES.items():
        (folder / "made" / name).write_text(text)
    return Package("made", folder / "made")


def probe(package: Package, **environment: str) -> dict[str, object]:
    """What a process of its own sees of the package."""
    folder = package.folder.parent
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, object] = json.loads(done.stdout)
    return found


def is_compiled(package: Package) -> bool:
    return runs_compiled(with_compiled([str(package.folder)]))


def append(package: Package, name: str, text: str) -> Package:
    """The package with something added to a file."""
    with (package.folder / name).open("a") as file:
        file.write(text)
    return Package(package.name, package.folder)


def builds_in(package: Package) -> list[str]:
    return sorted(path.name for path in (package.folder / "__pycache__").glob("*-*-*"))


@needs_compiler
def test_compiled_modules_say_what_python_says(built: Package) -> None:
    interpreted = probe(built, COMPILED="0")

    compiled = probe(built)

    assert interpreted.pop("libraries") == [False] * 4
    assert compiled.pop("libraries") == [
        False,
        True,
        True,
        True,
    ]  # what is inline all through needs no module
    assert compiled == interpreted


@needs_compiler
def test_traceback_names_the_python_file_and_line(built: Package) -> None:
    trace = subprocess.run(
        [sys.executable, "-c", "import made.table; made.table.where()"],
        cwd=built.folder.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(built.folder.parent), str(ROOT)])},
        capture_output=True,
        text=True,
        check=False,
    ).stderr

    line = TABLE.splitlines().index("    raise LookupError") + 1
    assert f'File "made/table.py", line {line}' in trace
    assert "    raise LookupError\n" in trace


@needs_compiler
def test_built_sources_are_not_built_again(built: Package) -> None:
    assert build(built) == []


@needs_compiler
@pytest.mark.parametrize("name", ["table.py", "table.pxd", "packed.pxd"])
def test_changed_sources_run_interpreted(changed: Package, name: str) -> None:
    assert is_compiled(changed)

    append(changed, name, "# changed\n")

    assert not is_compiled(changed)


@needs_compiler
def test_only_what_a_change_touches_is_compiled_again(changed: Package) -> None:
    before = builds_in(changed)
    (changed.folder / "__pycache__" / f"{building.UNFINISHED}killed-1").mkdir()

    compiled = build(append(changed, "plain.py", "LAST = 1\n"))

    assert compiled == ["plain"]
    assert is_compiled(changed)
    assert len(builds_in(changed)) == 1  # the older one is gone, and what a killed builder left
    assert builds_in(changed) != before


def test_types_reach_whoever_takes_them(tmp_path: Path) -> None:
    package = make_package(tmp_path)

    assert package.needed_by("share") == ["packed", "share", "table"]
    assert package.needed_by("table") == ["packed", "table"]


@needs_compiler
def test_failed_build_says_why_and_leaves_what_was_there(changed: Package) -> None:
    before = builds_in(changed)

    with pytest.raises(CompilationFailed, match=r"made\.plain does not compile:[^$]*undeclared name"):
        build(append(changed, "plain.py", "LAST: int = nobody_knows_this\n"))

    assert not is_compiled(changed)
    assert builds_in(changed) == before


def test_without_a_compiler_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = make_package(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)

    with pytest.raises(CannotCompile, match=r"apt-get install gcc python3-dev"):
        build(package)

    assert not is_compiled(package)


@needs_compiler
def test_two_builders_take_turns(tmp_path: Path, quick: None) -> None:
    package = make_package(tmp_path)
    (package.folder / "share.pxd").unlink()
    (package.folder / "table.pxd").unlink()

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(build, [package, Package(package.name, package.folder)]))

    assert sorted(done) == [[], ["plain"]]
