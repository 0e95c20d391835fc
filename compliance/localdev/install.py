"""Makes `.venv` with the pinned requirements if they are absent or have changed; then runs a command in it.

`./run` and `./test` call this with the system's Python (3.11 or newer): it imports the standard library only.
pip installs uv by its hash, uv all others. The benchmarks' rulers go into a second environment.
"""

import hashlib
import importlib.util
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from .console import HELP, StepFailed, exit_code, step
from .layout import ROOT
from .servers.processes import captured, tail
from .state import locked

VENV = ROOT / ".venv"
PYTHON = "bin/python"
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
    if code := exit_code(lambda: prepare(arguments[0])):
        sys.exit(code)
    os.environ["PYTHONPATH"] = str(ROOT)
    # Without bytecode, every process compiles the service and its packages again, and takes thrice as long.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    python = str(VENV / PYTHON)
    os.execv(python, [python, "-P", "-m", "compliance.localdev", *arguments])  # noqa: S606


def prepare(kind: str, *, venv: Path = VENV) -> None:
    """Install the requirements of `kind` into `venv`; a second process waits for the first."""
    stamp, wanted = venv / f".installed-{kind}", fingerprint(REQUIREMENTS[kind])

    def is_current() -> bool:
        return (venv / PYTHON).exists() and stamp.exists() and stamp.read_text() == wanted

    if is_current():
        return
    # The file locked is one of the checkout: no lock file is left behind.
    with locked(ROOT / "requirements.txt"):
        if is_current():
            return
        if not (venv / PYTHON).exists():
            with step("virtual environment"):
                # Without pip, which would take seconds and isn't needed.
                _run([sys.executable, "-m", "venv", "--without-pip", "--clear", str(venv)], hint=PIP_HINT)
        with step("pinned requirements"):
            files = [argument for name in REQUIREMENTS[kind] for argument in ("-r", str(ROOT / name))]
            # The files list everything, with what `overrides.txt` replaces: none is looked for again.
            options = ["-q", "--python", str(venv / PYTHON), "--no-deps", "--require-hashes"]
            _run([_uv(), "pip", "install", *options, *files])
        stamp.write_text(wanted)


def fingerprint(names: Sequence[str], root: Path = ROOT) -> str:
    """Return a hash of the requirement files' contents."""
    contents = ((name, hashlib.sha256((root / name).read_bytes()).hexdigest()) for name in names)
    return hashlib.sha256(repr(list(contents)).encode()).hexdigest()


def _uv() -> str:
    """Return the environment's uv, the machine's, or one installed now by this Python's pip."""
    own, python = VENV / "bin/uv", str(VENV / PYTHON)
    if not own.exists() and (others := shutil.which("uv")) is not None:
        return others
    if not own.exists():
        pip = [sys.executable, "-m", "pip", "--python", python]
        if importlib.util.find_spec("pip") is None:
            _run([python, "-m", "ensurepip"], hint=PIP_HINT)
            pip = [python, "-m", "pip"]
        pin = ["--require-hashes", "-r", str(Path(__file__).with_name("uv.txt"))]
        _run([*pip, "--disable-pip-version-check", "install", "-q", *pin])
    return str(own)


def _run(command: list[str], *, hint: str = NETWORK_HINT) -> None:
    """Run a command, or raise StepFailed.

    uv, unlike pip, must be told of the system's certificates and of pip's index.
    """
    environment = {"UV_SYSTEM_CERTS": "true", **os.environ}
    if index := environment.get("PIP_INDEX_URL"):
        environment.setdefault("UV_DEFAULT_INDEX", index)
    done = captured(command, cwd=ROOT, env=environment)
    if done.returncode != 0:
        raise StepFailed(f"the installation failed: {tail(done)}", hint=hint)


if __name__ == "__main__":
    main(sys.argv[1:])
