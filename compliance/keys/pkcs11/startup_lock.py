"""A lock between processes around initialisation and login, which some modules do wrong in parallel."""

import fcntl
import hashlib
import logging
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compliance.keys.base import KeyServiceUnavailable

logger = logging.getLogger(__name__)

WAIT_SECONDS = 30.0
POLL_SECONDS = 0.02


@contextmanager
def startup_lock(module_path: str) -> Iterator[None]:
    """Hold the lock that this user's processes share for one module; raises `KeyServiceUnavailable`."""
    path = _lock_file(module_path)
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        logger.warning("Start-up lock of the PKCS#11 module cannot be opened: %s", error)
        raise KeyServiceUnavailable from error
    try:
        _acquire(descriptor)
        yield
    finally:
        os.close(descriptor)


def _lock_file(module_path: str) -> Path:
    # Another configuration of SoftHSM means other tokens.
    named = f"{module_path}\0{os.environ.get('SOFTHSM2_CONF', '')}"
    digest = hashlib.sha256(named.encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"pkcs11-startup-{os.getuid()}-{digest}.lock"


def _acquire(descriptor: int) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                raise KeyServiceUnavailable from error
            time.sleep(POLL_SECONDS)
