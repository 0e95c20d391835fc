"""Compile the scorer with Cython: `python -m events.risk.compiling [--background]`.

Without a C compiler it runs as Python. The libraries lie in a folder named for a digest of the sources, so an
edited scorer runs as Python until it is compiled again.
"""

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGE: Final = Path(__file__).resolve().parent / "scoring"
SUFFIX: Final = str(sysconfig.get_config_var("EXT_SUFFIX"))
AS_PYTHON: Final = frozenset({"__init__", "contract", "packed"})
"""Modules that stay Python: compiling them gains nothing. Cython compiles `packed.pxd` into its users."""
# With annotation_typing a `float` would be a C double, which can't be None.
CYTHON: Final = (sys.executable, "-m", "cython", "-3", "-X", "annotation_typing=False")
# Results equal Python's to the last bit: no fused multiply-add, no functions of math.h evaluated beforehand.
FLAGS: Final = (
    *("-O2", "-g0", "-w", "-fPIC", "-shared", "-fwrapv", "-ffp-contract=off", "-DNDEBUG"),
    *(f"-fno-builtin-{name}" for name in ("exp", "log", "log1p")),
    *(("-undefined", "dynamic_lookup") if sys.platform == "darwin" else ()),
)


class CannotCompile(Exception):
    """The scorer can't be compiled; the text says why."""


def build_folder() -> Path:
    """Return where the libraries of the present sources lie, once they are compiled."""
    digest = hashlib.sha256(SUFFIX.encode())
    for source in (Path(__file__), *sorted(PACKAGE.rglob("*.p*[yd]"))):
        digest.update(source.name.encode() + source.read_bytes())
    return PACKAGE / "__pycache__" / f"compiled-{digest.hexdigest()[:16]}"


def with_compiled(path: Iterable[str]) -> list[str]:
    """Return a package's `__path__`, the libraries first if there are any; `COMPILED=0` leaves them out."""
    folders, build = list(path), build_folder()
    if os.environ.get("COMPILED") == "0" or not build.is_dir():
        return folders
    return [str(build / Path(folders[0]).resolve().relative_to(ROOT)), *folders]


def runs_compiled(path: Iterable[str]) -> bool:
    """Return whether a package with this `__path__` uses libraries."""
    return any("/compiled-" in folder for folder in path)


def compile_scorer() -> bool:
    """Compile the scorer unless that is done; return whether it had to be. Raises CannotCompile."""
    build = build_folder()
    if build.is_dir():
        return False
    compiler = find_compiler()
    build.parent.mkdir(exist_ok=True)
    with _alone(build.parent), tempfile.TemporaryDirectory(dir=build.parent) as folder:
        if build.is_dir():
            return False
        sources = [source for source in PACKAGE.rglob("*.py") if source.stem not in AS_PYTHON]
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            list(pool.map(lambda source: _compile(source, Path(folder), compiler), sources))
        for earlier in build.parent.glob("compiled-*"):
            shutil.rmtree(earlier, ignore_errors=True)
        Path(folder, "libraries").rename(build)
    return True


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait for another process that compiles; the kernel releases its lock when it ends."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def compile_in_background() -> bool:
    """Compile unless that is done, in a process of the lowest priority that outlives this one.

    Return whether there is something to compile. Raises CannotCompile.
    """
    if build_folder().is_dir():
        return False
    find_compiler()
    command = ["nice", "-n", "19", sys.executable, "-m", "events.risk.compiling"]
    nowhere = subprocess.DEVNULL
    subprocess.Popen(command, cwd=ROOT, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True)
    return True


def find_compiler() -> list[str]:
    """Return the C compiler's command line without the files. Raises CannotCompile."""
    include = sysconfig.get_path("include")
    configured = (os.environ.get("CC", ""), str(sysconfig.get_config_var("CC") or ""), "cc")
    for words in map(shlex.split, configured):
        if words and shutil.which(words[0]) and Path(include, "Python.h").exists():
            return [*words, *FLAGS, f"-I{include}"]
    raise CannotCompile("no C compiler or no Python.h (Debian, Ubuntu: apt-get install gcc python3-dev)")


def _compile(source: Path, folder: Path, compiler: list[str]) -> None:
    path = source.relative_to(ROOT).with_suffix("")
    name, library = ".".join(path.parts), folder / "libraries" / f"{path}{SUFFIX}"
    library.parent.mkdir(parents=True, exist_ok=True)
    _run([*CYTHON, "--module-name", name, f"{path}.py", "-o", f"{folder}/{name}.c"])
    _run([*compiler, f"{folder}/{name}.c", "-o", str(library), "-lm"])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotCompile("\n".join((done.stdout + done.stderr).strip().splitlines()[-15:]))


if __name__ == "__main__":
    try:
        if sys.argv[1:] == ["--background"]:
            if compile_in_background():
                sys.stdout.write("the scorer is being compiled in the background; the next start uses it\n")
        elif compile_scorer():
            sys.stdout.write("the scorer is compiled\n")
    except (CannotCompile, OSError) as error:
        sys.exit(f"the scorer runs interpreted, several times slower: {error}")
