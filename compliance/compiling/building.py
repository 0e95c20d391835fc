"""Compiles what a package's sources as they are need, and puts it where they are looked for."""

import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from compliance.compiling.builds import HERE, LIBRARY, PREFIX, SUFFIX, build_of, digest_of, sources_in
from compliance.compiling.staging import MATH, Package

AT_ONCE: Final = 4
"""Compilers that run side by side at most; each takes up to 300 MB."""
DIRECTIVES: Final = {
    "annotation_typing": False,  # `float` would be a C double, and None no longer allowed
    "cdivision": False,
    "embedsignature": False,
    "show_performance_hints": False,
}
# Results are those of Python to the last bit: no fused multiply-add, and nothing of math.h worked out
# beforehand by the compiler, which rounds better than the C library does.
FLAGS: Final = (
    *("-O2", "-g0", "-w", "-fPIC", "-shared", "-fwrapv", "-ffp-contract=off", "-DNDEBUG"),
    *(f"-fno-builtin-{name}" for name in sorted(MATH) if name.startswith(("exp", "log"))),
)
MANIFEST: Final = "built.json"
INSTALL: Final = "Debian, Ubuntu: apt-get install gcc python3-dev"
UNFINISHED: Final = "building-"


class CannotCompile(Exception):
    """The machine lacks what compiling takes."""


class CompilationFailed(Exception):
    """A module does not compile; the text is the end of what the compiler said."""


def build(package: Package) -> list[str]:
    """Have the package's compiled modules there; those that had to be compiled, none when all was there.

    Raises CannotCompile and CompilationFailed, and leaves what was there.
    """
    with _turn(package.folder):
        wanted, target = _fingerprints(package), build_of(package.folder)
        if not wanted or _manifest(target) == wanted:
            return []
        compiler = find_compiler()
        target.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=target.parent) as temporary:
            made = Path(temporary) / "made"
            made.mkdir()
            missing = [name for name in wanted if not _reuse(name, wanted[name], target.parent, made)]
            _compile_all(package, missing, compiler, Path(temporary) / "staged", made)
            (made / MANIFEST).write_text(json.dumps(wanted))
            if target.exists():  # of another Cython; who has it open keeps it
                target.rename(Path(temporary) / "old")
            made.rename(target)
        for other in (*_builds(target.parent), *target.parent.glob(f"{UNFINISHED}*")):
            if other != target:
                shutil.rmtree(other, ignore_errors=True)
        return missing


def _fingerprints(package: Package) -> dict[str, str]:
    """For each module a hash of all that its compiled form depends on."""
    try:
        made_by = f"Cython {version('cython')}"
    except PackageNotFoundError:
        raise CannotCompile("Cython is not installed") from None
    builder = sources_in(HERE, "*.py")
    return {
        module: digest_of(
            [
                package.folder / f"{module}.py",
                *(package.folder / f"{other}.pxd" for other in package.needed_by(module)),
                *builder,
            ],
            beside=made_by,
        )
        for module in package.staged
    }


def _builds(folder: Path) -> list[Path]:
    """This Python's builds in a package's cache, whatever sources they are of."""
    return [path for path in folder.glob(f"{PREFIX}*") if path.name.endswith(SUFFIX)]


def _manifest(build: Path) -> Mapping[str, str]:
    """The fingerprint of each module in a build."""
    try:
        found: Mapping[str, str] = json.loads((build / MANIFEST).read_text())
    except (OSError, ValueError):
        return {}
    return found


def _reuse(module: str, fingerprint: str, cache: Path, made: Path) -> bool:
    """Take the module from an earlier build if nothing has changed that it depends on."""
    for earlier in _builds(cache):
        library = earlier / f"{module}{LIBRARY}"
        if _manifest(earlier).get(module) == fingerprint and library.exists():
            shutil.copyfile(library, made / library.name)
            return True
    return False


def _compile_all(package: Package, modules: list[str], compiler: list[str], stage: Path, made: Path) -> None:
    folder = stage.joinpath(*package.name.split("."))
    folder.mkdir(parents=True)
    for inner in [folder, *folder.relative_to(stage).parents][:-1]:
        (stage / inner / "__init__.py").touch()
    for name, declared in package.declared.items():
        (folder / f"{name}.pxd").write_text(declared.text)
    for name in modules:
        (folder / f"{name}.py").write_text(package.staged[name])
    with ThreadPoolExecutor(min(AT_ONCE, os.cpu_count() or 1)) as pool:
        for _ in pool.map(lambda name: _compile(package.name, name, compiler, stage, made), modules):
            pass


def _compile(package: str, module: str, compiler: list[str], stage: Path, made: Path) -> None:
    source = Path(*package.split("."), f"{module}.py")
    directives = (argument for name, value in DIRECTIVES.items() for argument in ("-X", f"{name}={value}"))
    cython = [sys.executable, "-m", "cython", "-3", *directives, "-o", f"{module}.c"]
    _run([*cython, "--module-name", f"{package}.{module}", str(source)], stage, f"{package}.{module}")
    output = str(made / f"{module}{LIBRARY}")
    _run([*compiler, f"{module}.c", "-o", output, "-lm"], stage, f"{package}.{module}")


def _run(command: list[str], folder: Path, what: str) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        tail = "\n".join(done.stdout.strip().splitlines()[-15:])
        raise CompilationFailed(f"{what} does not compile:\n{tail or f'exit code {done.returncode}'}")


def find_compiler() -> list[str]:
    """The C compiler's command line but for the files."""
    if sys.byteorder != "little" or sys.implementation.name != "cpython":
        raise CannotCompile("compiled modules are for CPython on a little-endian machine")
    include = sysconfig.get_path("include")
    if not Path(include, "Python.h").exists():
        raise CannotCompile(f"Python.h is missing ({INSTALL})")
    configured = str(sysconfig.get_config_var("CC") or "")
    for choice in (os.environ.get("CC", ""), configured, "cc", "gcc", "clang"):
        words = shlex.split(choice)
        if words and shutil.which(words[0]):
            own = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
            return [*words, *FLAGS, *own, f"-I{include}"]
    raise CannotCompile(f"no C compiler ({INSTALL})")


@contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """Hold a lock on the package's folder itself: two builders at once take turns."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
