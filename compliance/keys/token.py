"""One token: logged in once per life of the module, sessions lent one caller at a time, key handles
remembered.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, TypeVar

from pkcs11 import Attribute, KeyType, ObjectClass, _pkcs11
from pkcs11 import Session as Pkcs11Session
from pkcs11 import Token as Pkcs11Token
from pkcs11.exceptions import UserAlreadyLoggedIn

from compliance.keys.circuit import Circuit
from compliance.keys.failures import KeyMissing
from compliance.keys.module import Module
from compliance.keys.startup import startup_lock

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

MAX_HANDLES: Final = 100_000
"""Handles remembered per token: about 25 MB when full."""
MAX_INDEXED: Final = 5_000
"""Keys read ahead from one token; a token with more has its handles looked up one by one."""
MISSES_BEFORE_INDEX: Final = 2
"""A process that uses a key or two of a token (the CA's) does not read all of it."""


@dataclass(frozen=True)
class TokenConfig:
    """How to find and open a token; the PIN is kept out of `repr` and logs."""

    label: str
    pin: str = field(repr=False)


class KeyObject(_pkcs11.SignMixin):  # type: ignore[name-defined]
    """A private key by its handle, on whichever session is free.

    Handles count for every session of a process (PKCS#11 v2.40 §5.7), while python-pkcs11 ties the objects it
    finds to one session and makes a class for each.
    """

    session: Any = None
    handle: int = 0
    key_type: KeyType | None = None

    def __init__(self, session: Pkcs11Session, handle: int) -> None:
        self.session = session
        self.handle = handle


@dataclass
class _Life:
    """What belongs to one epoch of the module; `anchor` is the session that holds the login."""

    epoch: int
    token: Pkcs11Token
    anchor: Pkcs11Session
    idle: list[Pkcs11Session] = field(default_factory=list)
    handles: dict[bytes, int] = field(default_factory=dict)
    misses: int = 0
    indexed: bool = False


@dataclass(frozen=True)
class Borrowed:
    """A session for one caller, with the token's memory of handles."""

    session: Pkcs11Session
    life: _Life

    @property
    def handles(self) -> dict[bytes, int]:
        return self.life.handles

    def find(self, object_class: ObjectClass, key_id: bytes) -> list[Any]:
        """Objects of a class with this CKA_ID; read to the end, or the session could not sign."""
        return list(self.session.get_objects({Attribute.CLASS: object_class, Attribute.ID: key_id}))

    def private_key(self, key_id: bytes) -> KeyObject:
        """The one private key with this CKA_ID; raises `KeyMissing`."""
        handle = self.handles.get(key_id)
        if handle is None:
            self.life.misses += 1
            found = self.find(ObjectClass.PRIVATE_KEY, key_id)
            if len(found) != 1:
                raise KeyMissing(f"{len(found)} private keys")
            handle = found[0].handle
            self.remember(key_id, handle)
        return KeyObject(self.session, handle)

    def remember(self, key_id: bytes, handle: int) -> None:
        """Keep a handle, at the cost of the oldest when memory is full."""
        if len(self.handles) >= MAX_HANDLES:
            self.handles.pop(next(iter(self.handles)), None)
        self.handles[key_id] = handle

    def remember_all(self) -> None:
        """Keep the handles of all private keys: reading them together costs less than a few look-ups, each
        of which goes through every object of the token.
        """
        found = self.session.get_objects({Attribute.CLASS: ObjectClass.PRIVATE_KEY})
        keys: list[Any] = list(islice(found, MAX_INDEXED))
        for key in keys:
            self.remember(key.id, key.handle)

    def touch(self) -> None:
        """Ask the module for the token's state: the cheapest call that notices its absence."""
        self.life.token.slot.get_token()


class Token:
    """Lends sessions of one token; all methods may be called from any thread."""

    def __init__(self, module: Module, config: TokenConfig) -> None:
        self.config = config
        self._module = module
        self.start_afresh()
        module.on_fork(self)

    @property
    def label(self) -> str:
        return self.config.label

    @property
    def is_open(self) -> bool:
        """Whether this process is logged in to it, or was when it was lost."""
        return self._life is not None or self.circuit.is_open

    def start_afresh(self) -> None:
        """Forget sessions and failures, as a forked child must."""
        self.circuit = Circuit()
        self._lock = threading.Lock()
        self._life: _Life | None = None

    def use(self, operation: Callable[[Borrowed], Result]) -> Result:
        """Run an operation on a borrowed session; raises what it raises, and PKCS11Error."""
        with self._module.entered() as epoch, self._lend(epoch) as borrowed:
            return operation(borrowed)

    def claim_index(self) -> bool:
        """Whether the caller shall read the token's handles ahead: once in each life of the module."""
        life = self._life
        if life is None or life.indexed or life.misses < MISSES_BEFORE_INDEX:
            return False
        with self._lock:
            is_first = not life.indexed
            life.indexed = True
        return is_first

    @contextmanager
    def _lend(self, epoch: int) -> Iterator[Borrowed]:
        life = self._life_of(epoch)
        session = self._take(life)
        # A session is not given back after an error: an operation may still be active on it.
        yield Borrowed(session, life)
        life.idle.append(session)

    def _take(self, life: _Life) -> Pkcs11Session:
        try:
            return life.idle.pop()
        except IndexError:
            return life.token.open(rw=True)

    def _life_of(self, epoch: int) -> _Life:
        life = self._life
        if life is not None and life.epoch == epoch:
            return life
        with self._lock:
            if self._life is None or self._life.epoch != epoch:
                self._life = None
                self._life = self._log_in(epoch)
            return self._life

    def _log_in(self, epoch: int) -> _Life:
        with startup_lock(self._module.path):
            token = self._module.find_token(self.label)
            try:
                anchor = token.open(rw=True, user_pin=self.config.pin)
            except UserAlreadyLoggedIn:
                anchor = token.open(rw=True)
        return _Life(epoch, token, anchor)
