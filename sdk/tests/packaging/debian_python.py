"""A Python that this machine lacks, from Debian's packages, unpacked into a folder; nothing is installed."""

import platform
import shutil
import subprocess
from pathlib import Path
from typing import Final

SUITE: Final = "sid"
"""The suite that has the newest Pythons."""
KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
PROGRAMS: Final = ("apt-get", "dpkg-deb")
SECONDS: Final = 300


def unpacked(version: str, folder: Path) -> tuple[str, ...] | None:
    """The command of Python `version` ("3.14"), unpacked below `folder`; None if it cannot be had here.

    It runs by the C library that it was built with, which may be newer than the machine's.
    """
    mirror = _mirror()
    if mirror is None or not _downloaded(version, folder, mirror):
        return None
    for package in (folder / "cache/archives").glob("*.deb"):
        subprocess.run(["dpkg-deb", "--extract", package, folder / "root"], check=True, timeout=SECONDS)
    (loader,) = (folder / "root/usr/lib").glob("*-linux-gnu/ld-linux*")
    return (
        str(loader),
        "--library-path",
        str(loader.parent),
        str(folder / "root/usr/bin" / f"python{version}"),
    )


def _mirror() -> str | None:
    """The mirror that this machine's own Debian comes from; None elsewhere."""
    if not KEYRING.exists() or not all(map(shutil.which, PROGRAMS)):
        return None
    release = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    listed = subprocess.run(
        [*("apt-get", "indextargets", "--no-release-info"), *("--format", "$(RELEASE) $(REPO_URI)")],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    targets = (line.split() for line in listed.stdout.splitlines())
    return next((uri for name, uri in targets if name == release), None)


def _downloaded(version: str, folder: Path, mirror: str) -> bool:
    """Fetch Python and all that it depends on, as for a machine without packages; False if that fails."""
    for each in ("lists/partial", "cache/archives/partial", "root"):
        (folder / each).mkdir(parents=True)
    (folder / "status").touch()
    (folder / "sources.list").write_text(f"deb [signed-by={KEYRING}] {mirror} {SUITE} main\n")
    options = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State": folder,
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", "--quiet", *(part for name, one in options.items() for part in ("-o", f"{name}={one}"))]
    wanted = ["install", "--yes", "--no-install-recommends", "--download-only", f"python{version}"]
    try:
        for command in (["update"], wanted):
            subprocess.run([*apt, *command], capture_output=True, check=True, timeout=SECONDS)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return False
    return True
