"""What survives between runs: small JSON files, generated secrets, and locks between processes."""

import base64
import fcntl
import json
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .console import StepFailed


class LockBusy(Exception):
    """Somebody else holds the lock and the caller did not want to wait."""


def read_json(path: Path) -> dict[str, Any]:
    """The object in `path`; empty when the file is absent. Raises StepFailed when it can't be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise StepFailed(
            f"{path} can't be read: {error}",
            hint=f"repair or remove {path}; if another user owns it, set LOCAL_DIR to a folder of your own",
        ) from error
    if not isinstance(content, dict):
        raise StepFailed(f"{path} holds no JSON object", hint=f"remove {path}")
    return content


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Replace `path` in one step, readable by its owner only; a crash leaves the old or the new content."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=2, sort_keys=True)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load_secrets(path: Path) -> dict[str, str]:
    """The stack's secrets, generated once; a newer version's additional ones are added to an older file."""
    stored = read_json(path)
    missing = {name: make() for name, make in _GENERATORS.items() if name not in stored}
    if missing:
        stored |= missing
        write_json(path, stored)
    return stored


def _token() -> str:
    return secrets.token_urlsafe(32)


def _pin() -> str:
    return secrets.token_hex(12)


def _fernet_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


_GENERATORS = {
    "secret_key": _token,
    "encryption_key": _fernet_key,
    "postgres_password": _token,
    "postgres_owner_password": _token,
    "postgres_service_password": _token,
    "postgres_reader_password": _token,
    "redis_password": _token,
    "pkcs11_user_pin": _pin,
    "pkcs11_so_pin": _pin,
}


@contextmanager
def locked(path: Path, *, shared: bool = False, wait: bool = True) -> Iterator[None]:
    """Hold an advisory lock on `path`; raises LockBusy when `wait` is false and it is taken.

    The kernel drops the lock with the process, however that ends, so a lock is never stale.
    """
    mode = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    with _open_for_lock(path) as file:
        try:
            fcntl.flock(file, mode)
        except BlockingIOError as error:
            raise LockBusy(str(path)) from error
        yield


def _open_for_lock(path: Path) -> Any:
    try:
        return path.open("a")
    except OSError as error:
        raise StepFailed(
            f"{path} can't be opened: {error.strerror}",
            hint="the folder belongs to somebody else; set LOCAL_DIR to a folder of your own",
        ) from error
