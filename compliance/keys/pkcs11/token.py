"""One token: logged in once per epoch of the module, with a pool of sessions and a cache of key handles."""

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

from compliance.core.circuit_breaker import CircuitBreaker
from compliance.keys import forks
from compliance.keys.base import KeyServiceUnavailable
from compliance.keys.pkcs11.module import Pkcs11Module
from compliance.keys.pkcs11.startup_lock import startup_lock
from compliance.keys.pkcs11.unwrapped import MOST_UNWRAPPED, UnwrappedKeys

Result = TypeVar("Result")

MAX_PRELOADED: Final = 5_000  # handles read together from one token
MISSES_BEFORE_PRELOAD: Final = 2
"""A process that uses one or two keys of a token does not read all of them."""
LONGEST_PAUSE: Final = 5.0


class KeyMissing(Exception):
    """A search found no key: the key may be gone, or its token."""


class KeyVanished(KeyMissing):
    """A search found no key that this process has used before."""


@dataclass(frozen=True)
class TokenConfig:
    """Label and user PIN of a token, the security officer's PIN if known; `repr` shows no PIN."""

    label: str
    pin: str = field(repr=False)
    so_pin: str = field(default="", repr=False)
    unwrapped: int = MOST_UNWRAPPED  # keys of the token that stay unwrapped in a process


class KeyHandle(_pkcs11.SignMixin):  # type: ignore[name-defined]
    """A private key by its handle, which is valid in every session of a process (PKCS#11 v2.40 §5.7)."""

    # These replace read-only properties of the mixin.
    session: Any = None
    handle: int = 0
    key_type: KeyType | None = None

    def __init__(self, session: Pkcs11Session, handle: int) -> None:
        self.session = session
        self.handle = handle


@dataclass
class _Login:
    """State of one epoch of the module; the session `anchor` keeps the token logged in."""

    epoch: int
    token: Pkcs11Token
    anchor: Pkcs11Session
    unwrapped: UnwrappedKeys
    idle: list[Pkcs11Session] = field(default_factory=list)
    handles: dict[bytes, int] = field(default_factory=dict)
    misses: int = 0
    wrapping_keys: dict[str, tuple[int, bool]] = field(default_factory=dict)


@dataclass(frozen=True)
class TokenSession:
    """A session lent to one caller, with the token's cache of handles."""

    session: Pkcs11Session
    login: _Login

    @property
    def handles(self) -> dict[bytes, int]:
        """Cached handles of private keys by CKA_ID."""
        return self.login.handles

    @property
    def wrapping_keys(self) -> dict[str, tuple[int, bool]]:
        """Cached handles of wrapping keys by URI, and whether the security officer trusts the key."""
        return self.login.wrapping_keys

    @property
    def unwrapped(self) -> UnwrappedKeys:
        return self.login.unwrapped

    def mechanisms(self) -> set[int]:
        """Return the numbers of the mechanisms that the token offers."""
        return set(self.login.token.slot.get_mechanisms())

    def find(self, object_class: ObjectClass, key_id: bytes) -> list[Any]:
        """Find the stored objects of a class with this CKA_ID; unwrapped keys are session objects."""
        wanted = {Attribute.CLASS: object_class, Attribute.ID: key_id, Attribute.TOKEN: True}
        # Read to the end: the session cannot sign while a search is open.
        return list(self.session.get_objects(wanted))

    def private_key(self, key_id: bytes) -> KeyHandle:
        """Return the one private key with this CKA_ID; raises `KeyMissing`."""
        handle = self.handles.get(key_id)
        return KeyHandle(self.session, self._look_up(key_id) if handle is None else handle)

    def touch(self) -> None:
        """Read the token's state: the cheapest call that notices its absence."""
        self.login.token.slot.get_token()

    def _look_up(self, key_id: bytes) -> int:
        """Find the key's handle; each search reads the whole token, so the third reads all handles."""
        self.login.misses += 1
        if self.login.misses == MISSES_BEFORE_PRELOAD + 1:
            self._preload()
            if key_id in self.handles:
                return self.handles[key_id]
        found = self.find(ObjectClass.PRIVATE_KEY, key_id)
        if len(found) != 1:
            raise KeyMissing(f"{len(found)} private keys")
        handle: int = found[0].handle
        self.handles[key_id] = handle
        return handle

    def _preload(self) -> None:
        found = self.session.get_objects({Attribute.CLASS: ObjectClass.PRIVATE_KEY, Attribute.TOKEN: True})
        keys: list[Any] = list(islice(found, MAX_PRELOADED))
        self.handles.update({key.id: key.handle for key in keys})


class TokenSessions:
    """Lend sessions of one token to any thread, and count the token's failures."""

    def __init__(self, module: Pkcs11Module, config: TokenConfig) -> None:
        self.config = config
        self.label = config.label
        self.pin_refused = False
        self._module = module
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        self.breaker = CircuitBreaker(
            lambda seconds: KeyServiceUnavailable(retry_after=max(1, round(seconds))),
            longest_pause=LONGEST_PAUSE,
        )
        self._lock = threading.Lock()
        self._login: _Login | None = None
        self.was_opened = False

    @property
    def serves(self) -> bool:
        return not self.breaker.is_open and not self.pin_refused

    def use(self, operation: Callable[[TokenSession], Result]) -> Result:
        """Run an operation on a session; raises what it raises, and PKCS11Error."""
        with self._module.entered() as epoch, self._lend(epoch) as session:
            return operation(session)

    @contextmanager
    def _lend(self, epoch: int) -> Iterator[TokenSession]:
        login = self._login_of(epoch)
        try:
            session = login.idle.pop()
        except IndexError:
            session = login.token.open(rw=True)
        # After an error the session is dropped: an operation may still be active on it.
        yield TokenSession(session, login)
        login.idle.append(session)

    def _login_of(self, epoch: int) -> _Login:
        login = self._login
        if login is not None and login.epoch == epoch:
            return login
        with self._lock:
            if self._login is None or self._login.epoch != epoch:
                self._login = None
                self._login = self._log_in(epoch)
            return self._login

    def _log_in(self, epoch: int) -> _Login:
        with startup_lock(self._module.path):
            token = self._module.find_token(self.label)
            try:
                anchor = token.open(rw=True, user_pin=self.config.pin)
            except UserAlreadyLoggedIn:
                anchor = token.open(rw=True)
        self.was_opened = True
        return _Login(epoch, token, anchor, UnwrappedKeys(size=self.config.unwrapped))
