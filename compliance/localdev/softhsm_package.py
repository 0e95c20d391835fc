"""SoftHSM without root: the distribution's package, downloaded by apt into a private folder and unpacked.

apt verifies the packages' signatures as ever; nothing is installed and no file of the system changes.
"""

import re
import shutil
import subprocess
from pathlib import Path

from .console import StepFailed

LIBRARY = "libsofthsm2.so"
PACKAGE = "libsofthsm2"
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
    making = folder.with_name(f"{folder.name}.making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True, mode=0o700)
    _fill(making)
    shutil.rmtree(folder, ignore_errors=True)
    making.rename(folder)
    shutil.rmtree(folder / "apt", ignore_errors=True)
    found = _unpacked(folder)
    if found is None:
        raise StepFailed(f"the package {PACKAGE} holds no {LIBRARY}", hint=INSTALL_HINT)
    return found


def _fill(folder: Path) -> None:
    """Unpack the package into `folder`, and what it needs where the system has no such libraries."""
    _run(_apt(folder, "update"), folder)
    _unpack(folder, [PACKAGE])
    library = next((folder / "root").rglob(LIBRARY), None)
    if library is not None and missing_libraries(library):
        _unpack(folder, _dependencies(folder))


def _unpack(folder: Path, packages: list[str]) -> None:
    archives = folder / "apt/archives"
    _run(_apt(folder, "download", *packages), archives)
    for archive in sorted(archives.glob("*.deb")):
        _run(["dpkg-deb", "-x", str(archive), str(folder / "root")], folder)
        archive.unlink()


def _dependencies(folder: Path) -> list[str]:
    """The package's dependencies, without the C library, which must be the system's own."""
    listing = _run(
        [*_options(folder, "apt-cache"), "depends", "--recurse", "--no-recommends", "--no-suggests",
         "--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances", PACKAGE],
        folder,
    )  # fmt: skip
    names = {line.strip() for line in listing.splitlines() if re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", line)}
    return sorted(name for name in names if name.startswith("lib") and name not in {PACKAGE, "libc6"})


def missing_libraries(library: Path) -> list[str]:
    """The shared libraries `library` needs and the system lacks; empty where `ldd` can't tell."""
    if shutil.which("ldd") is None:
        return []
    done = subprocess.run(["ldd", str(library)], capture_output=True, text=True, check=False)
    return re.findall(r"(\S+) => not found", done.stdout)


def _unpacked(folder: Path) -> tuple[Path, Path | None] | None:
    root = folder / "root"
    library = (
        next((p for p in root.rglob(LIBRARY) if p.is_file() and not p.is_symlink()), None)
        if root.is_dir()
        else None
    )
    if library is None:
        return None
    further = next((p.parent for p in root.rglob("libcrypto.so.*")), None)
    return library, further


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
