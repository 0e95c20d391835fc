"""One PKCS#11 module per process: initialised for threads, restarted when lost, safe across a fork.

After python-pkcs11's `C_Initialize(NULL)` SoftHSM uses no mutexes, and two threads crash the process. So the
module is initialised here, through ctypes with `CKF_OS_LOCKING_OK` (PKCS#11 v2.40 §5.4).
"""

import atexit
import ctypes
import fcntl
import hashlib
import logging
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_ulong
from pathlib import Path
from typing import Final

from pkcs11 import PKCS11Error, Token, TokenFlag, _pkcs11

from compliance.keys.base import KeyServiceNotConfigured, KeyServiceUnavailable, reset_in_children
from compliance.keys.pkcs11.softhsm import mend_tokens


class LockTimeout(Exception):
    """The lock was not acquired in time."""


class SharedLock:
    """A readers-writer lock; a waiting writer keeps new readers out. Timeouts are in seconds."""

    def __init__(self) -> None:
        self._condition = threading.Condition(threading.Lock())
        self.holders = 0  # who share it; a forked child reads it without the lock
        self._exclusive = False

    @contextmanager
    def shared(self, timeout: float) -> Iterator[None]:
        """Hold the lock together with others; raises `LockTimeout`."""
        with self._condition:
            if self._exclusive and not self._condition.wait_for(lambda: not self._exclusive, timeout):
                raise LockTimeout("the lock stayed exclusive")
            self.holders += 1
        try:
            yield
        finally:
            with self._condition:
                self.holders -= 1
                if self._exclusive:
                    self._condition.notify_all()

    def acquire_exclusive(self, timeout: float) -> None:
        """Hold the lock alone: keep new holders out, wait for the present ones; raises `LockTimeout`."""
        deadline = time.monotonic() + timeout
        with self._condition:
            if not self._condition.wait_for(lambda: not self._exclusive, timeout):
                raise LockTimeout("another holds the lock alone")
            self._exclusive = True
            if not self._condition.wait_for(lambda: not self.holders, max(0.0, deadline - time.monotonic())):
                self._exclusive = False
                self._condition.notify_all()
                raise LockTimeout("calls in flight did not return")

    def release_exclusive(self) -> None:
        with self._condition:
            self._exclusive = False
            self._condition.notify_all()


logger = logging.getLogger(__name__)

CKF_OS_LOCKING_OK: Final = 2
CKR_OK: Final = 0

# Seconds to wait for calls in flight: the slowest is an RSA key generation.
DRAIN_TIMEOUT: Final = 10.0
ENTRY_TIMEOUT: Final = 25.0
CLOSE_TIMEOUT: Final = 2.0
STARTUP_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.02


@contextmanager
def startup_lock(module_path: str) -> Iterator[None]:
    """Hold the lock of this user's processes around initialisation and login.

    Some modules do them wrong in parallel. Raises `KeyServiceUnavailable`.
    """
    # Another configuration of SoftHSM means other tokens.
    named = f"{module_path}\0{os.environ.get('SOFTHSM2_CONF', '')}"
    digest = hashlib.sha256(named.encode()).hexdigest()[:16]
    path = Path(tempfile.gettempdir()) / f"pkcs11-startup-{os.getuid()}-{digest}.lock"
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        logger.warning("Start-up lock of the PKCS#11 module cannot be opened: %s", error)
        raise KeyServiceUnavailable from error
    deadline = time.monotonic() + STARTUP_SECONDS
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise KeyServiceUnavailable from error
                time.sleep(POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


class _InitializeArgs(ctypes.Structure):
    _fields_ = (("mutexes", ctypes.c_void_p * 4), ("flags", c_ulong), ("reserved", ctypes.c_void_p))


_Function = ctypes.CFUNCTYPE(c_ulong, ctypes.c_void_p)
_InitToken = ctypes.CFUNCTYPE(c_ulong, c_ulong, ctypes.c_char_p, c_ulong, ctypes.c_char_p)


class _FunctionList(ctypes.Structure):
    """The head of CK_FUNCTION_LIST; every module exports it, not all export the functions by name."""

    _fields_ = (
        ("version", ctypes.c_ubyte * 2),
        ("C_Initialize", _Function),
        ("C_Finalize", _Function),
        ("_functions_in_between", ctypes.c_void_p * 7),
        ("C_InitToken", _InitToken),
    )


class _InitialisedLibrary(_pkcs11.lib):
    """python-pkcs11's library over a module that `Pkcs11Module` has initialised."""

    def initialize(self) -> None: ...


class Pkcs11Module:
    """A loaded PKCS#11 module; sessions and handles belong to one `epoch`, the time between two restarts."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.epoch = 0
        self.restart_seconds = 0.0
        self._functions: _FunctionList | None = None
        self.library: _InitialisedLibrary | None = None  # while the module is started
        self._tokens: dict[str, list[Token]] = {}
        self._is_unusable = False
        self.calls = SharedLock()
        self._load_lock = threading.Lock()
        reset_in_children.add(self)

    @contextmanager
    def entered(self) -> Iterator[int]:
        """Start the module if needed, and keep it from restarts inside; yields the epoch, raises 503s."""
        if self.library is None:
            self.restart(seen_epoch=self.epoch)
        try:
            with self.calls.shared(ENTRY_TIMEOUT):
                if self.library is None:
                    raise KeyServiceUnavailable
                yield self.epoch
        except LockTimeout as error:
            raise KeyServiceUnavailable from error

    def tokens(self) -> dict[str, list[Token]]:
        """Return the initialised tokens by label, as of the module's start. Call inside `entered()`."""
        # Read once: asking every slot for each of a hundred tokens would take seconds.
        if not self._tokens:
            found: dict[str, list[Token]] = {}
            for token in self.library.get_tokens() if self.library else ():
                if token.flags & TokenFlag.TOKEN_INITIALIZED:
                    found.setdefault(token.label, []).append(token)
            self._tokens = found
        return self._tokens

    def restart(self, *, seen_epoch: int) -> None:
        """Finalise and initialise, unless another thread has since `seen_epoch`; raises as `entered()`."""
        functions = self.functions()
        try:
            self.calls.acquire_exclusive(DRAIN_TIMEOUT)
        except LockTimeout as error:
            logger.warning("PKCS#11 module not restarted: %s", error)
            raise KeyServiceUnavailable from error
        try:
            if self.epoch != seen_epoch:
                return
            began = time.monotonic()
            self.epoch, self.library, self._tokens = self.epoch + 1, None, {}
            with startup_lock(self.path):
                mend_tokens(self.path)
                functions.C_Finalize(None)  # fails at a first start, when there is nothing to finalise
                result = functions.C_Initialize(ctypes.byref(_InitializeArgs(flags=CKF_OS_LOCKING_OK)))
            if result != CKR_OK:
                logger.warning("C_Initialize of %s returned 0x%x", self.path, result)
                raise KeyServiceUnavailable
            self.library = _InitialisedLibrary(self.path)
            self.restart_seconds = time.monotonic() - began
        except PKCS11Error as error:
            logger.warning("PKCS#11 module %s does not answer: %s", self.path, type(error).__name__)
            raise KeyServiceUnavailable from error
        finally:
            self.calls.release_exclusive()

    def functions(self) -> _FunctionList:
        """Return the module's own functions, loaded at the first call; raises as `entered()`."""
        if self._is_unusable:
            logger.error("PKCS#11 module unusable: this process was forked while a call was in flight")
            raise KeyServiceUnavailable
        with self._load_lock:
            if self._functions is not None:
                return self._functions
            pointer, result = ctypes.POINTER(_FunctionList)(), None
            fault = "it names no PKCS#11 module"
            if self.path:
                try:
                    result = ctypes.CDLL(self.path).C_GetFunctionList(ctypes.byref(pointer))
                    fault = f"C_GetFunctionList returned 0x{result:x}"
                except (OSError, AttributeError) as error:
                    fault = str(error)
            if result != CKR_OK:
                logger.error("KMS not configured: PKCS11_MODULE cannot be used: %s", fault)
                raise KeyServiceNotConfigured
            self._functions = pointer.contents
            atexit.register(self.close)
            return self._functions

    def reset_after_fork(self) -> None:
        """Drop what belongs to the parent; the next call initialises the module for this process."""
        # The child's copy of the module may hold a lock that nobody will release.
        self._is_unusable = self._is_unusable or self.calls.holders > 0
        self.epoch, self.library, self._tokens = self.epoch + 1, None, {}
        self.calls = SharedLock()
        self._load_lock = threading.Lock()

    def close(self) -> None:
        """Finalise the module at the end of the process, unless calls are in flight."""
        if self.library is None or self._functions is None:
            return
        try:
            self.calls.acquire_exclusive(CLOSE_TIMEOUT)
        except LockTimeout:
            return
        self.library = None
        self._functions.C_Finalize(None)


_modules: dict[str, Pkcs11Module] = {}
_held_for_fork: list[SharedLock] = []


def module_at(path: str) -> Pkcs11Module:
    """Return this process's only `Pkcs11Module` for a shared object; its first use loads it."""
    return _modules.setdefault(path, Pkcs11Module(path))


def _before_fork() -> None:
    """Wait until no call is in flight; after `DRAIN_TIMEOUT` the child cannot use the module."""
    for module in list(_modules.values()):
        lock = module.calls
        try:
            lock.acquire_exclusive(DRAIN_TIMEOUT)
        except LockTimeout:
            logger.warning("Forking while a call into %s is in flight", module.path)
        else:
            _held_for_fork.append(lock)


def _after_fork_in_parent() -> None:
    while _held_for_fork:
        _held_for_fork.pop().release_exclusive()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_held_for_fork.clear
)
