"""SoftHSM without root: apt downloads the distribution's package, which is unpacked in a private folder.

apt verifies the signature as usual; nothing is installed and no file of the system changes.
"""

import shutil
import subprocess
from pathlib import Path

from ..console import StepFailed, step
from ..servers.processes import captured

LIBRARY = "libsofthsm2.so"
INSTALL_HINT = (
    "install SoftHSM (Debian, Ubuntu: apt-get install softhsm2; Fedora: dnf install softhsm; "
    "Alpine: apk add softhsm), or set PKCS11_MODULE to a PKCS#11 library"
)
SECONDS = 180


def fetch_module(folder: Path) -> Path:
    """Return the library unpacked in `folder`, fetched if need be. Raises StepFailed.

    The libraries it needs and the system lacks are unpacked with it.
    """
    if not folder.exists():
        missing = [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]
        if missing:
            raise StepFailed("SoftHSM was not found on this system", hint=INSTALL_HINT)
        with step("SoftHSM from the distribution's package"):
            _fetch(folder)
    found = next((path for path in folder.rglob(LIBRARY) if not path.is_symlink()), None)
    if found is None:
        raise StepFailed(f"the package holds no {LIBRARY}", hint=f"remove {folder}, or {INSTALL_HINT}")
    return found


def _fetch(folder: Path) -> None:
    """Download and unpack beside `folder`, then move into place, so that no half-filled folder is used."""
    making = folder.with_name(f"{folder.name}.making")
    shutil.rmtree(making, ignore_errors=True)
    for path in ("state/lists/partial", "cache/archives/partial", "root"):
        (making / path).mkdir(parents=True, mode=0o700)
    # Lists and archives are in our folder; sources, keys and what is installed are the system's.
    options = {
        "Dir::State": making / "state",
        "Dir::State::status": "/var/lib/dpkg/status",
        "Dir::Cache": making / "cache",
        "Dir::Log": making,
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Acquire::Retries": "2",
        "Debug::NoLocking": "true",
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]
    _run([*apt, "update"])
    _run([*apt, "install", "--yes", "--no-install-recommends", "--download-only", "libsofthsm2"])
    for archive in sorted(making.glob("cache/archives/*.deb")):
        _run(["dpkg-deb", "-x", str(archive), str(making / "root")])
    (making / "root").rename(folder)
    shutil.rmtree(making)


def _run(command: list[str]) -> None:
    try:
        done = captured(command, timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise StepFailed(f"{command[0]} took over {SECONDS} s", hint=INSTALL_HINT) from error
    if done.returncode != 0:
        raise StepFailed(f"{command[0]} failed: {done.stderr.strip()[-400:]}", hint=INSTALL_HINT)
