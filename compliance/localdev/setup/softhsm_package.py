"""SoftHSM without root: apt downloads the distribution's package, which is unpacked in a private folder.

apt verifies the signature as usual; nothing is installed and no file of the system changes.
"""

import re
import shutil
import subprocess
from pathlib import Path

from ..console import StepFailed, step
from ..servers.processes import captured

LIBRARY = "libsofthsm2.so"
PACKAGE = "libsofthsm2"
LIBRARIES = "libraries"
INSTALL_HINT = (
    "install SoftHSM (Debian, Ubuntu: apt-get install softhsm2; Fedora: dnf install softhsm; "
    "Alpine: apk add softhsm), or set PKCS11_MODULE to a PKCS#11 library"
)
SECONDS = 180


def fetch_module(folder: Path) -> tuple[Path, Path | None]:
    """Return the library in `folder`, fetched if need be, and the folder of libraries that it needs."""
    if (found := _unpacked(folder)) is not None:
        return found
    missing = [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]
    if missing:
        raise StepFailed("SoftHSM was not found on this system", hint=INSTALL_HINT)
    with step("SoftHSM from the distribution's package"):
        _fetch(folder)
    if (found := _unpacked(folder)) is None:
        raise StepFailed(f"the package {PACKAGE} holds no {LIBRARY}", hint=INSTALL_HINT)
    return found


def _fetch(folder: Path) -> None:
    """Download and unpack beside `folder`, then move into place, so that no half-filled folder is used."""
    making = folder.with_name(f"{folder.name}.making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True, mode=0o700)
    _fill(making)
    shutil.rmtree(folder, ignore_errors=True)
    making.rename(folder)
    shutil.rmtree(folder / "apt", ignore_errors=True)


def _fill(folder: Path) -> None:
    _run([*_options(folder, "apt-get"), "-qq", "update"], folder)
    _unpack(folder, [PACKAGE], folder / "root")
    library = _unpacked(folder)
    missing = missing_libraries(library[0]) if library is not None else []
    if missing:
        unpacked = folder / "dependencies"
        _unpack(folder, _dependencies(folder), unpacked)
        (folder / LIBRARIES).mkdir()
        for file in (found for name in missing for found in unpacked.rglob(name)):
            shutil.copy(file, folder / LIBRARIES)
        shutil.rmtree(unpacked)


def _unpack(folder: Path, packages: list[str], target: Path) -> None:
    archives = folder / "apt/archives"
    _run([*_options(folder, "apt-get"), "-qq", "download", *packages], archives)
    for archive in sorted(archives.glob("*.deb")):
        _run(["dpkg-deb", "-x", str(archive), str(target)], folder)
        archive.unlink()


def _dependencies(folder: Path) -> list[str]:
    """List the packages of libraries it depends on, but for the C library, which must be the system's."""
    listing = _run([*_options(folder, "apt-cache"), "depends", "--important", PACKAGE], folder)
    return sorted({*re.findall(r"Depends: (lib[a-z0-9+.-]+)", listing)} - {"libc6"})


def missing_libraries(library: Path) -> list[str]:
    """List the shared libraries that `library` needs and the system lacks; empty without `ldd`."""
    if shutil.which("ldd") is None:
        return []
    return re.findall(r"(\S+) => not found", captured(["ldd", str(library)]).stdout)


def _unpacked(folder: Path) -> tuple[Path, Path | None] | None:
    libraries = folder / LIBRARIES if (folder / LIBRARIES).is_dir() else None
    found = (path for path in (folder / "root").rglob(LIBRARY) if path.is_file() and not path.is_symlink())
    return next(((path, libraries) for path in found), None)


def _options(folder: Path, program: str) -> list[str]:
    """Return `program` with its lists, archives and logs in `folder`, and the system's sources and keys."""
    for path in ("apt/state/lists/partial", "apt/cache/archives/partial", "apt/archives", "root"):
        (folder / path).mkdir(parents=True, exist_ok=True)
    pairs = {
        "Dir::State": folder / "apt/state",
        "Dir::State::status": "/var/lib/dpkg/status",
        "Dir::Cache": folder / "apt/cache",
        "Dir::Log": folder / "apt",
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Acquire::Retries": "2",
        "Debug::NoLocking": "true",
    }
    return [program, *(f"-o{name}={value}" for name, value in pairs.items())]


def _run(command: list[str], cwd: Path) -> str:
    try:
        done = captured(command, cwd=cwd, timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise StepFailed(f"{command[0]} took over {SECONDS} s", hint=INSTALL_HINT) from error
    if done.returncode != 0:
        raise StepFailed(f"{command[0]} failed: {done.stderr.strip()[-400:]}", hint=INSTALL_HINT)
    return done.stdout
