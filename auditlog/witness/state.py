"""A witness's folder: one durable file for its key and one for each log, for one process at a time."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self


class WitnessUnusable(Exception):
    """The witness can't start; the text tells its operator why."""


class StateFolder:
    """The folder, which this process alone uses inside the block.

    Raises: WitnessUnusable if another process uses it.
    """

    def __init__(self, path: Path) -> None:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise WitnessUnusable(f"Another process uses {path}") from error
        _sync(path.absolute().parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        os.close(self._descriptor)

    def names(self, suffix: str) -> Iterator[str]:
        return (path.name for path in sorted(self._path.iterdir()) if path.name.endswith(suffix))

    def read(self, name: str) -> bytes | None:
        """Return a file's content; None if there is no such file."""
        path = self._path / name
        return path.read_bytes() if path.exists() else None

    def write(self, name: str, content: bytes) -> None:
        """Replace a file as a whole. Once this returns, a crash of the machine does not undo it."""
        temporary = self._path / f"{name}.new"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        temporary.replace(self._path / name)
        os.fsync(self._descriptor)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
