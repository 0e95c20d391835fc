"""Makes `.venv` with the pinned requirements if they are absent or have changed; then runs a command in it.

`./run` and `./test` call this with the system's Python (3.11 or newer): it imports the standard library only.
pip installs uv by its hash, uv all others. The benchmarks' rulers go into a second environment.
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

from ..console import HELP, StepFailed, complain, say, step
from ..layout import ROOT
from ..servers.processes import captured, tail

VENV = ROOT / ".venv"
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
    if list(arguments[:2]) in (["run", "--help"], ["run", "-h"]):
        sys.stdout.write(HELP)
        sys.exit(0)
    try:
        prepare(arguments[0])
    except StepFailed as failure:
        complain(failure)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    os.environ["PYTHONPATH"] = str(ROOT)
    python = str(python_of(VENV))
    os.execv(python, [python, "-P", "-m", "compliance.localdev", *arguments])  # noqa: S606


def prepare(kind: str, *, venv: Path = VENV) -> None:
    """Install the requirements of `kind` into `venv`; a second process waits for the first."""
    stamp, wanted = venv / f".installed-{kind}", fingerprint(REQUIREMENTS[kind])

    def is_current() -> bool:
        return python_of(venv).exists() and stamp.exists() and stamp.read_text() == wanted

    if is_current():
        return
    with _installing_alone():
        if is_current():
            return
        if not python_of(venv).exists():
            with step("virtual environment"):
                _make_venv(venv)
        with step("pinned requirements"):
            _install(REQUIREMENTS[kind], venv)
        stamp.write_text(wanted)


def python_of(venv: Path) -> Path:
    return venv / "bin/python"


def fingerprint(names: Sequence[str], root: Path = ROOT) -> str:
    """Return a hash of the requirement files' contents."""
    digest = hashlib.sha256()
    for name in names:
        content = (root / name).read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


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
    files = [argument for name in names for argument in ("-r", str(ROOT / name))]
    # The files list everything, with what `overrides.txt` replaces: dependencies are not looked for again.
    options = ["--python", str(python_of(venv)), "--no-deps", "--require-hashes"]
    done = _run([_uv(), "pip", "install", "-q", *options, *files])
    if done.returncode != 0:
        raise StepFailed(f"the requirements can't be installed: {tail(done)}", hint=NETWORK_HINT)


def _uv() -> str:
    """Return the environment's uv, the machine's, or one installed now."""
    own, others = VENV / "bin/uv", shutil.which("uv")
    if not own.exists() and others is None:
        done = _run([*_pip(), "install", "-q", "--require-hashes", "-r", str(UV_PIN)])
        if done.returncode != 0:
            raise StepFailed(f"uv can't be installed: {tail(done)}", hint=NETWORK_HINT)
    return str(own) if own.exists() else str(others)


def _pip() -> list[str]:
    """Return a pip that installs into `VENV`: this Python's, else the one that Python bundles."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "--python", str(python_of(VENV)), "--disable-pip-version-check"]
    if _run([str(python_of(VENV)), "-m", "ensurepip"]).returncode != 0:
        raise StepFailed("this Python has neither pip nor ensurepip", hint=PIP_HINT)
    return [str(python_of(VENV)), "-m", "pip", "--disable-pip-version-check"]


def _run(command: list[str]) -> CompletedProcess[str]:
    """Run a command; uv, unlike pip, must be told of the system's certificates and of pip's index."""
    environment = {"UV_SYSTEM_CERTS": "true", **os.environ}
    if index := environment.get("PIP_INDEX_URL"):
        environment.setdefault("UV_DEFAULT_INDEX", index)
    return captured(command, cwd=ROOT, env=environment)


if __name__ == "__main__":
    main(sys.argv[1:])
