"""Where compiled modules lie, and which of them are those of the sources as they are."""

import hashlib
import os
from collections.abc import Iterable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Final

OFF: Final = "0"
"""The value of COMPILED in the environment that has all modules run as Python."""
PREFIX: Final = "compiled-"
LIBRARY: Final = EXTENSION_SUFFIXES[0]
"""How a library's name ends: it tells the Python and the machine."""
SUFFIX: Final = f"-{LIBRARY.split('.')[1]}"
HERE: Final = Path(__file__).parent


def with_compiled(path: Iterable[str]) -> list[str]:
    """A package's `__path__`, its compiled modules in front if there are any of the sources as they are."""
    folders = list(path)
    if os.environ.get("COMPILED") == OFF:
        return folders
    build = build_of(Path(folders[0]))
    return [str(build), *folders] if build.is_dir() else folders


def runs_compiled(path: Iterable[str]) -> bool:
    """Whether a package with this `__path__` runs compiled."""
    return any(Path(folder).name.startswith(PREFIX) for folder in path)


def build_of(folder: Path) -> Path:
    """Where the compiled modules of a package's folder lie, once they are made."""
    digest = digest_of([*sources_in(folder), *sources_in(HERE, "*.py")])
    return folder / "__pycache__" / f"{PREFIX}{digest[:16]}{SUFFIX}"


def sources_in(folder: Path, pattern: str = "*.pxd") -> list[Path]:
    """The files of that pattern in order, each `.pxd` with the module it stands beside."""
    found = sorted(folder.glob(pattern))
    beside = (path.with_suffix(".py") for path in found if path.suffix == ".pxd")
    return found + [path for path in beside if path.exists()]


def digest_of(files: Iterable[Path], *, beside: str = "") -> str:
    """A hash of the files' names and contents, and of the text."""
    digest = hashlib.sha256(beside.encode())
    for file in files:
        content = file.read_bytes()
        digest.update(f"\n{file.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()
