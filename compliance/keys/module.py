"""One PKCS#11 module per process: initialised for threads, restarted when lost, safe across a fork.

python-pkcs11 calls `C_Initialize(NULL)`, upon which SoftHSM (as the standard allows) drops its mutexes and
two threads crash the process. Here the module is initialised through ctypes with `CKF_OS_LOCKING_OK`
(PKCS#11 v2.40 §5.4) on the same loaded library, and python-pkcs11's own initialisation is overridden to do
nothing.
"""

import atexit
import ctypes
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final
from weakref import WeakSet

from pkcs11 import PKCS11Error, Slot, Token, TokenFlag, _pkcs11
from pkcs11.exceptions import MultipleTokensReturned, NoSuchToken

from compliance.keys.base import KeyServiceNotConfigured, KeyServiceUnavailable
from compliance.keys.gate import Gate, GateTimeout
from compliance.keys.softhsm import mend_tokens
from compliance.keys.startup import startup_lock

logger = logging.getLogger(__name__)

CKF_OS_LOCKING_OK: Final = 2
CKR_OK: Final = 0

# Seconds to wait for calls in flight: the slowest is an RSA key generation.
DRAIN_TIMEOUT: Final = 10.0
ENTRY_TIMEOUT: Final = 25.0


class _InitializeArgs(ctypes.Structure):
    """CK_C_INITIALIZE_ARGS."""

    _fields_ = (
        ("CreateMutex", ctypes.c_void_p),
        ("DestroyMutex", ctypes.c_void_p),
        ("LockMutex", ctypes.c_void_p),
        ("UnlockMutex", ctypes.c_void_p),
        ("flags", ctypes.c_ulong),
        ("pReserved", ctypes.c_void_p),
    )


_Function = ctypes.CFUNCTYPE(ctypes.c_ulong, ctypes.c_void_p)


class FunctionList(ctypes.Structure):
    """The head of CK_FUNCTION_LIST; every module exports it, not all export the functions by name."""

    _fields_ = (
        ("version", ctypes.c_ubyte * 2),
        ("C_Initialize", _Function),
        ("C_Finalize", _Function),
        ("_info_to_mechanism_info", ctypes.c_void_p * 7),
        ("C_InitToken", ctypes.c_void_p),
        ("C_InitPIN", ctypes.c_void_p),
        ("C_SetPIN", ctypes.c_void_p),
        ("C_OpenSession", ctypes.c_void_p),
        ("C_CloseSession", ctypes.c_void_p),
        ("_close_all_to_operation_state", ctypes.c_void_p * 4),
        ("C_Login", ctypes.c_void_p),
    )


class _Library(_pkcs11.lib):
    """python-pkcs11's library on a module that its owner has initialised already."""

    def initialize(self) -> None:
        """Nothing: see the module's docstring."""


class Module:
    """A loaded PKCS#11 module; `epoch` counts its lives, and sessions and handles belong to one of them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.epoch = 0
        self._on_fork: WeakSet[object] = WeakSet()
        self._functions: FunctionList | None = None
        self._library: _Library | None = None
        self._broken = ""
        self._tokens: dict[str, list[Token]] = {}
        self.restart_seconds = 0.0
        self._renew_locks()

    def _renew_locks(self) -> None:
        self.gate = Gate()
        self._load_lock = threading.Lock()

    @property
    def is_started(self) -> bool:
        """Whether this process has initialised it."""
        return self._library is not None

    @contextmanager
    def entered(self) -> Iterator[int]:
        """Hold the module open for calls; yields the epoch. Starts it if this process has not yet.

        Raises `KeyServiceUnavailable` or `KeyServiceNotConfigured`.
        """
        if self._library is None:
            self.restart(seen_epoch=self.epoch)
        try:
            with self.gate.shared(ENTRY_TIMEOUT):
                if self._library is None:
                    raise KeyServiceUnavailable
                yield self.epoch
        except GateTimeout as error:
            raise KeyServiceUnavailable from error

    def find_token(self, label: str) -> Token:
        """The token with this label; PKCS11Error when it is not there. Call inside `entered()`."""
        found = self.tokens().get(label, [])
        if len(found) > 1:
            raise MultipleTokensReturned
        if not found:
            raise NoSuchToken
        return found[0]

    def tokens(self) -> dict[str, list[Token]]:
        """The initialised tokens by label, as of the module's start: asking every slot for each of a hundred
        tokens would take seconds. Call inside `entered()`.
        """
        if self._library is None:
            raise KeyServiceUnavailable
        if not self._tokens:
            found: dict[str, list[Token]] = {}
            for token in self._library.get_tokens():
                if token.flags & TokenFlag.TOKEN_INITIALIZED:
                    found.setdefault(token.label, []).append(token)
            self._tokens = found
        return self._tokens

    def slots(self) -> list[Slot]:
        """Every slot with a token in it, be it initialised or not. Call inside `entered()`."""
        if self._library is None:
            raise KeyServiceUnavailable
        return list(self._library.get_slots(token_present=True))

    @property
    def functions(self) -> FunctionList:
        """The module's own functions, for what python-pkcs11 has no name for. Call inside `entered()`."""
        return self._load()

    def restart(self, *, seen_epoch: int) -> None:
        """Finalise and initialise, unless another thread has done so since `seen_epoch`."""
        functions = self._load()
        try:
            with self.gate.exclusive(DRAIN_TIMEOUT):
                if self.epoch != seen_epoch:
                    return
                self.epoch += 1
                self._library = None
                self._tokens = {}
                began = time.monotonic()
                with startup_lock(self.path):
                    mend_tokens(self.path)
                    self._initialise(functions)
                self._library = self._open_library()
                self.restart_seconds = time.monotonic() - began
        except GateTimeout as error:
            logger.warning("PKCS#11 module not restarted: %s", error)
            raise KeyServiceUnavailable from error

    def _initialise(self, functions: FunctionList) -> None:
        arguments = _InitializeArgs(flags=CKF_OS_LOCKING_OK)
        functions.C_Finalize(None)  # a first start has nothing to finalise, which is no error here
        result = functions.C_Initialize(ctypes.byref(arguments))
        if result != CKR_OK:
            logger.warning("C_Initialize of %s returned 0x%x", self.path, result)
            raise KeyServiceUnavailable

    def _open_library(self) -> _Library:
        try:
            return _Library(self.path)
        except PKCS11Error as error:
            logger.warning("PKCS#11 module %s does not answer: %s", self.path, type(error).__name__)
            raise KeyServiceUnavailable from error

    def _load(self) -> FunctionList:
        """Load the shared object once; `KeyServiceNotConfigured` when it is missing or no PKCS#11 module."""
        if self._broken:
            logger.error("PKCS#11 module unusable in this process: %s", self._broken)
            raise KeyServiceUnavailable
        with self._load_lock:
            if self._functions is None:
                self._functions = _load_functions(self.path)
            return self._functions

    def on_fork(self, owner: object) -> None:
        """Call `owner.start_afresh()` in every child that is forked from here."""
        self._on_fork.add(owner)

    def start_afresh(self) -> None:
        """In a forked child: forget what the parent had. The module is initialised anew on first use."""
        if self.gate.inside:
            self._broken = "the process was forked during a call; its copy of the module may hold locks"
        self.epoch += 1
        self._library = None
        self._tokens = {}
        self._renew_locks()
        for owner in list(self._on_fork):
            owner.start_afresh()  # type: ignore[attr-defined]

    def close(self) -> None:
        """At the end of the process: let calls come back, then finalise; later calls are refused."""
        if self._library is None or self._functions is None:
            return
        try:
            self.gate.close(timeout=2.0)
        except GateTimeout:
            return
        self._library = None
        self._functions.C_Finalize(None)


def _load_functions(path: str) -> FunctionList:
    if not path:
        raise _not_configured("PKCS11_MODULE names no PKCS#11 module")
    try:
        get_function_list = ctypes.CDLL(path).C_GetFunctionList
    except (OSError, AttributeError) as error:
        raise _not_configured(f"PKCS11_MODULE can't be loaded: {error}") from error
    pointer = ctypes.POINTER(FunctionList)()
    result = get_function_list(ctypes.byref(pointer))
    if result != CKR_OK:
        raise _not_configured(f"C_GetFunctionList of {path} returned 0x{result:x}")
    return pointer.contents


def _not_configured(reason: str) -> KeyServiceNotConfigured:
    logger.error("KMS not configured: %s", reason)
    return KeyServiceNotConfigured()


_modules: dict[str, Module] = {}
_modules_lock = threading.Lock()
_closed_for_fork: list[Gate] = []


def module_at(path: str) -> Module:
    """This process's only `Module` for a shared object; nothing is loaded before its first use."""
    with _modules_lock:
        if not _modules and path:
            _watch_process()
        return _modules.setdefault(path, Module(path))


def _watch_process() -> None:
    atexit.register(_each, Module.close)
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
    )


def _each(action: Callable[[Module], None]) -> None:
    for module in list(_modules.values()):
        action(module)


def _before_fork() -> None:
    """Wait until no call is in flight; after `DRAIN_TIMEOUT` fork all the same, and the child refuses the
    module.
    """
    for module in list(_modules.values()):
        gate = module.gate
        try:
            gate.close(DRAIN_TIMEOUT)
        except GateTimeout:
            logger.warning("Forking while a call into %s is in flight", module.path)
        else:
            _closed_for_fork.append(gate)


def _after_fork_in_parent() -> None:
    while _closed_for_fork:
        _closed_for_fork.pop().open()


def _after_fork_in_child() -> None:
    _modules_lock._at_fork_reinit()  # type: ignore[attr-defined]
    _closed_for_fork.clear()
    _each(Module.start_afresh)
