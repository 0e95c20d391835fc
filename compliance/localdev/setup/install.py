"""Makes `.venv` with the pinned requirements if they are absent or have changed; then runs a command in it.

`./run` and `./test` call this with the system's Python (3.11 or newer). pip installs uv by its hash, uv all
others; if uv is missing or fails, pip does. The benchmarks' rulers go into a second environment.
"""

import fcntl
import hashlib
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import NoReturn

from ..console import StepFailed, complain, say, step
from ..layout import ROOT
from ..servers.processes import captured, tail

VENV = ROOT / ".venv"
HELP = (["--help"], ["-h"], ["help"])
UV_PIN = Path(__file__).with_name("uv.txt")
REQUIREMENTS = {
    "run": ("requirements.txt", "requirements-local.txt"),
    "test": ("requirements.txt", "requirements-local.txt", "requirements-dev.txt"),
    "bench": ("requirements-bench.txt",),
}
NETWORK_HINT = "check the network and the package index that pip is configured for, then try again"
PIP_HINT = "install pip for this Python (Debian, Ubuntu: apt-get install python3-pip python3-venv), or uv"


def main(arguments: Sequence[str]) -> NoReturn:
    """Install, then become the command `run|test ARGUMENTS`. Exit with 1 on a failure, 130 on Ctrl-C."""
    wants_help = arguments[0] == "run" and arguments[1:2] in HELP
    try:
        if not wants_help:
            prepare(arguments[0])
    except StepFailed as failure:
        complain(failure)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    os.environ["PYTHONPATH"] = str(ROOT)
    python = sys.executable if wants_help else str(python_of(VENV))
    os.execv(python, [python, "-P", "-m", "compliance.localdev", *arguments])  # noqa: S606


def prepare(kind: str, *, venv: Path = VENV) -> None:
    """Install the requirements of `kind` into `venv`; a second process waits for the first."""
    if _is_current(kind, venv):
        return
    with _installing_alone():
        if _is_current(kind, venv):
            return
        if not os.access(python_of(venv), os.X_OK):
            with step("virtual environment"):
                _make_venv(venv)
        with step("pinned requirements"):
            _install(REQUIREMENTS[kind], venv)
        (venv / f".installed-{kind}").write_text(fingerprint(REQUIREMENTS[kind]))


def python_of(venv: Path) -> Path:
    return venv / "bin/python"


def fingerprint(names: Sequence[str], root: Path = ROOT) -> str:
    """Return a hash of the requirement files' contents."""
    digest = hashlib.sha256()
    for name in names:
        content = (root / name).read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _is_current(kind: str, venv: Path) -> bool:
    stamp, has_python = venv / f".installed-{kind}", os.access(python_of(venv), os.X_OK)
    return has_python and stamp.exists() and stamp.read_text() == fingerprint(REQUIREMENTS[kind])


@contextmanager
def _installing_alone() -> Iterator[None]:
    """Hold a lock on the checkout's folder, which needs no file; the kernel releases it with the process."""
    handle = os.open(ROOT, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("  … another ./run or ./test is installing; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _make_venv(venv: Path) -> None:
    """Make an environment without pip, which would take seconds and isn't needed."""
    done = _run([sys.executable, "-m", "venv", "--without-pip", "--clear", str(venv)])
    if done.returncode != 0:
        hint = f"use a checkout that belongs to you, or {PIP_HINT}"
        raise StepFailed(f"{venv} can't be made: {tail(done)}", hint=hint)


def _install(names: Sequence[str], venv: Path) -> None:
    # The files list everything, with what `overrides.txt` replaces: dependencies are not looked for again.
    files = [
        "--no-deps",
        "--require-hashes",
        *(argument for name in names for argument in ("-r", str(ROOT / name))),
    ]
    uv = _find_uv()
    if uv is not None:
        done = _run([uv, "pip", "install", "-q", "--python", str(python_of(venv)), *files])
        if done.returncode == 0:
            return
        say(f"  … uv failed ({tail(done)}); trying pip")
    done = _run([*_pip(venv), "install", "-q", *files])
    if done.returncode != 0:
        raise StepFailed(f"the requirements can't be installed: {tail(done)}", hint=NETWORK_HINT)


def _find_uv() -> str | None:
    """Return the environment's uv, the machine's, or one installed now; None if it can't be had."""
    own, others = VENV / "bin/uv", shutil.which("uv")
    if not own.exists() and others is None:
        _run([*_pip(VENV), "install", "-q", "--require-hashes", "-r", str(UV_PIN)])
    return str(own) if own.exists() else others


def _pip(venv: Path) -> list[str]:
    """Return a pip that installs into `venv`: this Python's, else the one that Python bundles."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "--python", str(python_of(venv)), "--disable-pip-version-check"]
    has_pip = (venv / "bin/pip").exists() or _run([str(python_of(venv)), "-m", "ensurepip"]).returncode == 0
    if not has_pip:
        raise StepFailed("this Python has neither pip nor ensurepip", hint=PIP_HINT)
    return [str(python_of(venv)), "-m", "pip", "--disable-pip-version-check"]


def _run(command: list[str]) -> CompletedProcess[str]:
    """Run a command; uv, unlike pip, must be told of the system's certificates and of pip's index."""
    environment = {"UV_SYSTEM_CERTS": "true", **os.environ}
    if index := environment.get("PIP_INDEX_URL"):
        environment.setdefault("UV_DEFAULT_INDEX", index)
    return captured(command, cwd=ROOT, env=environment)


if __name__ == "__main__":
    main(sys.argv[1:])
