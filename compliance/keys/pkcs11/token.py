"""One token: logged in once per epoch of the module, with a pool of sessions and a cache of key handles."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from pkcs11 import (
    Attribute,
    KeyType,
    ObjectClass,
    Session as Pkcs11Session,
    Token as Pkcs11Token,
    _pkcs11,
    exceptions,
)

from compliance.core.circuit_breaker import CircuitBreaker
from compliance.keys.base import KeyServiceUnavailable, reset_in_children
from compliance.keys.pkcs11.module import Pkcs11Module, startup_lock

Result = TypeVar("Result")

LONGEST_PAUSE: Final = 5.0

PIN_REFUSED: Final = (
    *(exceptions.PinIncorrect, exceptions.PinInvalid, exceptions.PinLenRange, exceptions.PinExpired),
    *(exceptions.PinLocked, exceptions.UserPinNotInitialized),
)
"""Errors after which another try could lock the token."""

REQUEST_REFUSED: Final = (
    *(exceptions.ArgumentsBad, exceptions.AttributeTypeInvalid, exceptions.AttributeValueInvalid),
    *(exceptions.DataInvalid, exceptions.DataLenRange, exceptions.FunctionNotSupported),
    *(exceptions.KeySizeRange, exceptions.KeyTypeInconsistent),
    *(exceptions.MechanismInvalid, exceptions.MechanismParamInvalid),
    *(exceptions.TemplateIncomplete, exceptions.TemplateInconsistent, exceptions.TokenWriteProtected),
)
"""Errors of a token that serves and will refuse the same request again."""

STALE_HANDLE: Final = (
    *(exceptions.KeyHandleInvalid, exceptions.ObjectHandleInvalid),
    *(exceptions.UnwrappingKeyHandleInvalid, exceptions.WrappingKeyHandleInvalid),
)
"""Another process may have destroyed the key: it is looked up before the module is restarted."""

LOST: Final = (
    *(exceptions.DeviceError, exceptions.DeviceRemoved, exceptions.DeviceMemory, exceptions.HostMemory),
    *(exceptions.SessionHandleInvalid, exceptions.SessionClosed, exceptions.TokenNotPresent),
    *(exceptions.TokenNotRecognised, exceptions.UserNotLoggedIn),
)
"""Errors of a token that has gone away, whatever the wrapped key holds."""


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


class Handle:
    """An object by its handle, which is valid in every session of a process (PKCS#11 v2.40 §5.7)."""

    # These replace read-only properties of the library's mixins.
    session: Any = None
    handle: int = 0
    key_type: KeyType | None = None

    def __init__(self, session: Pkcs11Session, handle: int) -> None:
        self.session = session
        self.handle = handle


class KeyHandle(Handle, _pkcs11.SignMixin):  # type: ignore[name-defined]
    """A private key."""


@dataclass
class _Login:
    """One epoch's login, kept by `anchor`; handles by CKA_ID, wrapping keys by URI with CKA_TRUSTED."""

    epoch: int
    token: Pkcs11Token
    anchor: Pkcs11Session
    idle: list[Pkcs11Session] = field(default_factory=list)
    handles: dict[bytes, int] = field(default_factory=dict)
    wrapping_keys: dict[str, tuple[int, bool]] = field(default_factory=dict)


@dataclass(frozen=True)
class TokenSession:
    """A session lent to one caller, with the token's label and its cache of handles."""

    label: str
    session: Pkcs11Session
    login: _Login

    def find(self, object_class: ObjectClass, key_id: bytes) -> list[Any]:
        """Find the stored objects of a class with this CKA_ID; unwrapped keys are session objects."""
        wanted = {Attribute.CLASS: object_class, Attribute.ID: key_id, Attribute.TOKEN: True}
        # Read to the end: the session cannot sign while a search is open.
        return list(self.session.get_objects(wanted))

    def private_key(self, key_id: bytes) -> KeyHandle:
        """Return the one private key with this CKA_ID; raises `KeyMissing`."""
        handles = self.login.handles
        if key_id not in handles:
            found = self.find(ObjectClass.PRIVATE_KEY, key_id)
            if len(found) != 1:
                raise KeyMissing(f"{len(found)} private keys")
            handles[key_id] = found[0].handle
        return KeyHandle(self.session, handles[key_id])

    def touch(self) -> None:
        """Read the token's state: the cheapest call that notices its absence."""
        self.login.token.slot.get_token()


class TokenSessions:
    """Lend sessions of one token to any thread, and count the token's failures."""

    def __init__(self, module: Pkcs11Module, config: TokenConfig) -> None:
        self.config = config
        self.label = config.label
        self.pin_refused = False
        self._module = module
        self.reset_after_fork()
        reset_in_children.add(self)

    def reset_after_fork(self) -> None:
        self.breaker = CircuitBreaker(
            lambda seconds: KeyServiceUnavailable(retry_after=max(1, round(seconds))),
            longest_pause=LONGEST_PAUSE,
        )
        self._lock = threading.Lock()
        self._login: _Login | None = None
        self.was_opened = False

    def use(self, operation: Callable[[TokenSession], Result]) -> Result:
        """Run an operation on a session; raises what it raises, and PKCS11Error."""
        with self._module.entered() as epoch:
            login = self._login_of(epoch)
            try:
                session = login.idle.pop()
            except IndexError:
                session = login.token.open(rw=True)
            result = operation(TokenSession(self.label, session, login))
            # After an error the session is dropped: an operation may still be active on it.
            login.idle.append(session)
        return result

    def _login_of(self, epoch: int) -> _Login:
        login = self._login
        if login is not None and login.epoch == epoch:
            return login
        with self._lock:
            if self._login is None or self._login.epoch != epoch:
                self._login = None
                with startup_lock(self._module.path):
                    found = self._module.tokens().get(self.label, [])
                    if len(found) != 1:
                        raise exceptions.MultipleTokensReturned if found else exceptions.NoSuchToken
                    token = found[0]
                    try:
                        anchor = token.open(rw=True, user_pin=self.config.pin)
                    except exceptions.UserAlreadyLoggedIn:
                        anchor = token.open(rw=True)
                self.was_opened = True
                self._login = _Login(epoch, token, anchor)
            return self._login
