"""Makes `.venv` with the pinned requirements when it is absent or they changed; then runs a command in it.

`./run` and `./test` call this with the system's Python (3.11 or newer): `install.py run|test ARGUMENTS…`.
What the service is measured against is installed apart, in a second environment (`prepare("bench", venv=…)`).
uv does the installing, itself installed by pip with its hash; where it can't be had, pip does all.
"""

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from .console import STARTED, StepFailed, complain, say, step
from .layout import ROOT

VENV = ROOT / ".venv"
HELP = (["--help"], ["-h"], ["help"])  # needs no environment
UV_PIN = Path(__file__).with_name("uv.txt")
REQUIREMENTS = {
    "run": ("requirements.txt", "requirements-local.txt"),
    "test": ("requirements.txt", "requirements-local.txt", "requirements-dev.txt"),
    "bench": ("requirements-bench.txt",),
}
NETWORK_HINT = "check the network and the package index that pip is configured for, then try again"
PIP_HINT = "install pip for this Python (Debian, Ubuntu: apt-get install python3-pip python3-venv), or uv"


def main(arguments: Sequence[str]) -> NoReturn:
    """Install, then become the command. Exits with 1 when the installation failed, 130 on Ctrl-C."""
    started = time.monotonic()
    wants_help = arguments[0] == "run" and arguments[1:2] in HELP
    try:
        if not wants_help:
            prepare(arguments[0])
    except StepFailed as failure:
        complain(failure)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    os.environ |= {"PYTHONPATH": str(ROOT), STARTED: str(started)}
    python = sys.executable if wants_help else str(python_of(VENV))
    os.execv(python, [python, "-P", "-m", "compliance.localdev", *arguments])  # noqa: S606


def prepare(kind: str, *, venv: Path = VENV) -> None:
    """Have `venv` hold what `kind` needs; two invocations at once take turns."""
    if is_current(kind, venv=venv):
        return
    with _turn():
        if is_current(kind, venv=venv):
            return
        if not has_python(venv):
            with step("virtual environment"):
                _make_venv(venv)
        with step("pinned requirements"):
            _install(REQUIREMENTS[kind], venv)
        _stamp(kind, venv).write_text(fingerprint(REQUIREMENTS[kind]))


def is_current(kind: str, *, venv: Path = VENV) -> bool:
    """Whether `venv` was filled from the requirement files as they are."""
    stamp = _stamp(kind, venv)
    return has_python(venv) and stamp.exists() and stamp.read_text() == fingerprint(REQUIREMENTS[kind])


def has_python(venv: Path = VENV) -> bool:
    """Whether the environment's Python can be run; it may point into another user's home, or nowhere."""
    return os.access(python_of(venv), os.X_OK)


def python_of(venv: Path) -> Path:
    """The Python of a virtual environment."""
    return venv / "bin/python"


def fingerprint(names: Sequence[str], root: Path = ROOT) -> str:
    """A hash of the requirement files' contents."""
    digest = hashlib.sha256()
    for name in names:
        content = (root / name).read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _stamp(kind: str, venv: Path) -> Path:
    return venv / f".installed-{kind}"


@contextmanager
def _turn() -> Iterator[None]:
    """Hold a lock on the checkout's folder itself: it needs no file, and the kernel lets go of it."""
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
    """An empty environment; without pip, which takes seconds to lay down and isn't needed."""
    done = _run([sys.executable, "-m", "venv", "--without-pip", "--clear", str(venv)])
    if done.returncode != 0:
        raise StepFailed(
            f"{venv} can't be made: {_tail(done)}", hint=f"use a checkout that belongs to you, or {PIP_HINT}"
        )


def _install(names: Sequence[str], venv: Path) -> None:
    """Install the requirement files: with uv in seconds, else with pip in half a minute."""
    files = [argument for name in names for argument in ("-r", str(ROOT / name))]
    uv, python = _find_uv(), str(python_of(venv))
    if uv is not None:
        done = _run(
            [uv, "pip", "install", "-q", "--python", python, "--require-hashes", *_uv_cache(), *files]
        )
        if done.returncode == 0:
            return
        say(f"  … uv failed ({_tail(done)}); trying pip")
    done = _run([*_pip(venv), "install", "-q", "--require-hashes", *files])
    if done.returncode != 0:
        raise StepFailed(f"the requirements can't be installed: {_tail(done)}", hint=NETWORK_HINT)


def _find_uv() -> str | None:
    """A uv program: the environment's, the machine's, or installed now; None if it can't be had."""
    own = VENV / "bin/uv"
    if own.exists():
        return str(own)
    found = shutil.which("uv")
    if found is not None:
        return found
    done = _run([*_pip(VENV), "install", "-q", "--require-hashes", "-r", str(UV_PIN)])
    return str(own) if done.returncode == 0 and own.exists() else None


def _pip(venv: Path) -> list[str]:
    """A pip that installs into the environment: this Python's, else the one Python brings along."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "--python", str(python_of(venv)), "--disable-pip-version-check"]
    if not (venv / "bin/pip").exists():
        done = _run([str(python_of(venv)), "-m", "ensurepip"])
        if done.returncode != 0:
            raise StepFailed("this Python has neither pip nor ensurepip", hint=PIP_HINT)
    return [str(python_of(venv)), "-m", "pip", "--disable-pip-version-check"]


def _uv_cache() -> list[str]:
    """uv insists on a cache it can write: do without where the home folder is not writable."""
    given = os.environ.get("UV_CACHE_DIR")
    folder = (
        Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "uv"
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return ["--no-cache"]
    return ["--cache-dir", str(folder)] if os.access(folder, os.W_OK) else ["--no-cache"]


def _uv_environment() -> dict[str, str]:
    """Our environment with pip's index and the system's certificates, which uv would not look for."""
    environment = dict(os.environ)
    environment.setdefault("UV_SYSTEM_CERTS", "true")
    index = environment.get("PIP_INDEX_URL")
    if index:
        environment.setdefault("UV_DEFAULT_INDEX", index)
    return environment


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=ROOT,
        env=_uv_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def _tail(done: subprocess.CompletedProcess[str]) -> str:
    lines = done.stdout.strip().splitlines()
    return " / ".join(lines[-3:]) or f"exit code {done.returncode}"


if __name__ == "__main__":
    main(sys.argv[1:])
