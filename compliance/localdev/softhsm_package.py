"""SoftHSM without root: the distribution's package, downloaded by apt into a private folder and unpacked.

apt verifies the packages' signatures as ever; nothing is installed and no file of the system changes.
"""

import re
import shutil
import subprocess
from pathlib import Path

from .console import StepFailed, step

LIBRARY = "libsofthsm2.so"
PACKAGE = "libsofthsm2"
LIBRARIES = "libraries"
INSTALL_HINT = (
    "install SoftHSM (Debian, Ubuntu: apt-get install softhsm2; Fedora: dnf install softhsm; "
    "Alpine: apk add softhsm), or set PKCS11_MODULE to a PKCS#11 library"
)
SECONDS = 180


def fetch_module(folder: Path) -> tuple[Path, Path | None]:
    """The library under `folder`, fetched if it isn't there, and where further libraries it needs are."""
    found = _unpacked(folder)
    if found is not None:
        return found
    missing = [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]
    if missing:
        raise StepFailed("SoftHSM was not found on this system", hint=INSTALL_HINT)
    with step("SoftHSM from the distribution's package"):
        _fetch(folder)
    found = _unpacked(folder)
    if found is None:
        raise StepFailed(f"the package {PACKAGE} holds no {LIBRARY}", hint=INSTALL_HINT)
    return found


def _fetch(folder: Path) -> None:
    """Download and unpack beside `folder`, then move into place: half of it is never taken for all."""
    making = folder.with_name(f"{folder.name}.making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True, mode=0o700)
    _fill(making)
    shutil.rmtree(folder, ignore_errors=True)
    making.rename(folder)
    shutil.rmtree(folder / "apt", ignore_errors=True)


def _fill(folder: Path) -> None:
    """Unpack the package into `folder`, and the libraries it needs that the system lacks."""
    _run(_apt(folder, "update"), folder)
    _unpack(folder, [PACKAGE], folder / "root")
    library = _library(folder)
    missing = missing_libraries(library) if library is not None else []
    if missing:
        unpacked = folder / "dependencies"
        _unpack(folder, _dependencies(folder), unpacked)
        (folder / LIBRARIES).mkdir()
        for file in (found for name in missing for found in unpacked.rglob(name)):
            shutil.copy(file, folder / LIBRARIES)
        shutil.rmtree(unpacked)


def _unpack(folder: Path, packages: list[str], target: Path) -> None:
    archives = folder / "apt/archives"
    _run(_apt(folder, "download", *packages), archives)
    for archive in sorted(archives.glob("*.deb")):
        _run(["dpkg-deb", "-x", str(archive), str(target)], folder)
        archive.unlink()


def _dependencies(folder: Path) -> list[str]:
    """The libraries' packages it depends on, without the C library, which must be the system's own."""
    listing = _run([*_options(folder, "apt-cache"), "depends", "--important", PACKAGE], folder)
    names = set(re.findall(r"Depends: (lib[a-z0-9+.-]+)", listing))
    return sorted(names - {"libc6"})


def missing_libraries(library: Path) -> list[str]:
    """The shared libraries `library` needs and the system lacks; empty where `ldd` can't tell."""
    if shutil.which("ldd") is None:
        return []
    done = subprocess.run(["ldd", str(library)], capture_output=True, text=True, check=False)
    return re.findall(r"(\S+) => not found", done.stdout)


def _unpacked(folder: Path) -> tuple[Path, Path | None] | None:
    library = _library(folder)
    if library is None:
        return None
    further = folder / LIBRARIES
    return library, further if further.is_dir() else None


def _library(folder: Path) -> Path | None:
    """The unpacked library itself; the package holds a link to it besides."""
    found = (path for path in (folder / "root").rglob(LIBRARY) if path.is_file() and not path.is_symlink())
    return next(found, None)


def _options(folder: Path, program: str) -> list[str]:
    """`program` with its lists, archives and logs in `folder`; the system's sources and keys stay."""
    state, cache = folder / "apt/state", folder / "apt/cache"
    for path in (
        state / "lists/partial",
        cache / "archives/partial",
        folder / "apt/archives",
        folder / "root",
    ):
        path.mkdir(parents=True, exist_ok=True)
    status = "/var/lib/dpkg/status"
    pairs = {
        "Dir::State": state,
        "Dir::State::status": status,
        "Dir::Cache": cache,
        "Dir::Log": folder / "apt",
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Acquire::Retries": "2",
        "Debug::NoLocking": "true",
    }
    return [program, *(f"-o{name}={value}" for name, value in pairs.items())]


def _apt(folder: Path, *arguments: str) -> list[str]:
    return [*_options(folder, "apt-get"), "-qq", *arguments]


def _run(command: list[str], cwd: Path) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise StepFailed(f"{command[0]} took over {SECONDS} s", hint=INSTALL_HINT) from error
    if done.returncode != 0:
        raise StepFailed(f"{command[0]} failed: {done.stderr.strip()[-400:]}", hint=INSTALL_HINT)
    return done.stdout
