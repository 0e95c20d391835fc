"""State that outlives a command: small JSON files, generated secrets, and locks between processes."""

import base64
import fcntl
import json
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .console import StepFailed


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in `path`; empty if there is no file. Raises StepFailed if it can't be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise StepFailed(f"{path} holds no JSON object", hint=f"repair or remove {path}")
    return content


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_private(path, json.dumps(content, indent=2, sort_keys=True) + "\n")


def write_private(path: Path, text: str) -> None:
    """Replace `path` in one step, readable by its owner only; a crash leaves the old or the new content."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    Path(file.name).replace(path)


def load_secrets(path: Path) -> dict[str, str]:
    """Return the stack's secrets, and generate those that `path` lacks."""
    databases = (f"postgres{role}_password" for role in ("", "_owner", "_service", "_reader"))
    fresh = {name: secrets.token_urlsafe(32) for name in ("secret_key", "redis_password", *databases)}
    fresh |= {name: secrets.token_hex(12) for name in ("pkcs11_user_pin", "pkcs11_so_pin")}
    fresh["encryption_key"] = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    with locked(path.with_suffix(".lock")):
        stored = read_json(path)
        if fresh.keys() - stored.keys():
            stored = fresh | stored
            write_json(path, stored)
    return stored


@contextmanager
def locked(path: Path, *, shared: bool = False, wait: bool = True) -> Iterator[None]:
    """Hold an advisory lock on `path` inside the block.

    Raises BlockingIOError if it is taken and `wait` is false. The kernel releases the lock when the process
    ends, so a lock is never stale.
    """
    mode = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    with path.open("a") as file:
        fcntl.flock(file, mode)
        yield
