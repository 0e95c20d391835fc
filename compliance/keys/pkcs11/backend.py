"""The backend of a process that loads the PKCS#11 module itself."""

import logging
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Any, Final, TypeVar

from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from django.conf import settings
from pkcs11 import Attribute, KeyType, Mechanism, ObjectClass, PKCS11Error

from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.keys import base
from compliance.keys.pkcs11 import objects
from compliance.keys.pkcs11.call_threads import CallThreads, CallTimeout
from compliance.keys.pkcs11.module import Pkcs11Module, module_at
from compliance.keys.pkcs11.objects import read_public_key, stored_key
from compliance.keys.pkcs11.provisioning import make_tokens
from compliance.keys.pkcs11.token import (
    PIN_REFUSED,
    REQUEST_REFUSED,
    STALE_HANDLE,
    KeyMissing,
    KeyVanished,
    TokenConfig,
    TokenSession,
    TokenSessions,
)
from compliance.keys.pkcs11.wrapping import make_wrapped, make_wrapping_key, sign_wrapped, wrap_anew
from compliance.keys.uri import Pkcs11Uri, build, parse
from compliance.observing import metrics

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

SIGN_THREADS: Final = 4
GENERATE_THREADS: Final = 2
GENERATE_NICENESS: Final = 5  # signing gets more of the processor's time
CALL_TIMEOUT: Final = 10.0
GENERATE_TIMEOUT: Final = 30.0
CHECK_TIMEOUT: Final = 3.0
START_TIMEOUT: Final = 30.0  # SoftHSM then reads every object of every token
# Looking for a lost token or key restarts the module, which delays all: for one part in so many of the time.
RESTART_SHARE: Final = 20
LONGEST_RESTART_PAUSE: Final = 60.0

CURVES: Final = {
    base.P256: (KeyType.EC, objects.P256_PARAMETERS),
    base.ED25519: (KeyType.EC_EDWARDS, objects.ED25519_PARAMETERS),
}
HALVES: Final = (ObjectClass.PRIVATE_KEY, ObjectClass.PUBLIC_KEY)
KINDS: Final = (*HALVES, ObjectClass.SECRET_KEY)

# RFC 8017 §9.2 note 1: DER of DigestInfo up to the digest.
DIGEST_INFO: Final = bytes.fromhex("3031300d060960864801650304020105000420")


def pkcs11_backend(environment: Environment) -> "Pkcs11Backend":
    """Make the environment's backend from settings; raises `KeyServiceNotConfigured`."""
    label, pin = base.main_token(environment)
    if not settings.PKCS11_MODULE:
        raise base.KeyServiceNotConfigured
    config = TokenConfig(label, pin, settings.PKCS11_SO_PIN)
    return Pkcs11Backend(module_at(settings.PKCS11_MODULE), config, shards=settings.PKCS11_SHARDS)


class Pkcs11Backend(base.KeyBackend):
    """Keys in tokens of a module, loaded at the first call; generation has threads of low priority."""

    def __init__(self, module: Pkcs11Module, main: TokenConfig, *, shards: int = 0) -> None:
        super().__init__(main.label, shards=shards)
        self._module = module
        self._config = main
        self._main = TokenSessions(module, main)
        self._tokens = {main.label: self._main}
        self.reset_after_fork()
        base.reset_in_children(self)

    def reset_after_fork(self) -> None:
        self._lock = threading.Lock()
        self._restart_due_at = 0.0
        self._calls = CallThreads(size=SIGN_THREADS, name="keys-call")
        size, niceness = GENERATE_THREADS, GENERATE_NICENESS
        self._generations = CallThreads(size=size, name="keys-generate", niceness=niceness)

    @property
    def is_blocked(self) -> bool:
        return self._calls.stuck >= SIGN_THREADS

    def generate_in(self, token: str, bits: int, label: str, keep_public: bool) -> base.KeyRef:
        sessions, key_id = self._sessions(token), new_id().bytes
        options: dict[str, Any] = {
            "id": key_id,
            "label": label,
            "store": True,
            "capabilities": objects.SIGN_AND_VERIFY,
            "private_template": objects.PRIVATE,
            "public_template": objects.PUBLIC if keep_public else objects.SESSION_PUBLIC,
        }

        def generate(session: TokenSession) -> base.AnyPublicKey:
            public: Any
            private: Any
            if bits in CURVES:
                kind, parameters = CURVES[bits]
                wanted = {Attribute.EC_PARAMS: parameters}
                curve = session.session.create_domain_parameters(kind, wanted, local=True)
                public, private = curve.generate_keypair(**options)
            else:
                public, private = session.session.generate_keypair(KeyType.RSA, bits, **options)
            session.login.handles[key_id] = private.handle
            public_key = read_public_key(public)
            if not keep_public:
                public.destroy()
            if public_key is None:
                raise base.KeyServiceUnavailable
            return public_key

        public_key = self._call(
            "generate", sessions, generate, threads=self._generations, timeout=GENERATE_TIMEOUT
        )
        return base.KeyRef.of(build(Pkcs11Uri(token=token, id=key_id, object=label)), public_key)

    def sign_digest(self, uri: str, digest: bytes, algorithm: base.SignatureAlgorithm) -> bytes:
        base.require_digest(digest)
        if algorithm is base.SignatureAlgorithm.RSA_SHA256:
            return self._sign_raw(uri, DIGEST_INFO + digest, Mechanism.RSA_PKCS)
        signature = self._sign_raw(uri, digest, Mechanism.ECDSA)
        half = len(signature) // 2
        return encode_dss_signature(int.from_bytes(signature[:half]), int.from_bytes(signature[half:]))

    def sign_ed25519(self, uri: str, message: bytes) -> bytes:
        base.require_message(message)
        return self._sign_raw(uri, message, Mechanism.EDDSA)

    def make_wrapping_key(self, label: str) -> base.WrappingKeyRef:
        make = partial(make_wrapping_key, token=self.main_label, label=label)
        return self._call("make_wrapping_key", self._main, make)

    def generate_wrapped(self, wrapping: base.WrappingKeyRef, label: str) -> base.WrappedKey:
        token = self.token_of(wrapping.uri)
        make = partial(make_wrapped, wrapping=wrapping, token=token, label=label)
        threads, timeout = self._generations, GENERATE_TIMEOUT
        return self._call("generate_wrapped", self._sessions(token), make, threads=threads, timeout=timeout)

    def sign_wrapped(self, key: base.WrappedKey, digest: bytes) -> bytes:
        base.require_digest(digest)
        sessions, data = self._sessions(self.token_of(key.wrapping.uri)), DIGEST_INFO + digest
        return self._call("sign_wrapped", sessions, lambda session: sign_wrapped(session, key, data))

    def wrap_anew(self, wrapped: base.WrappedKey, to: base.WrappingKeyRef) -> base.WrappedKey:
        token = self.token_of(wrapped.wrapping.uri)
        if self.token_of(to.uri) != token:
            raise base.KeyNotFound
        return self._call("wrap_anew", self._sessions(token), lambda session: wrap_anew(session, wrapped, to))

    def spki(self, uri: str) -> bytes:
        sessions, key_id = self._locate(uri)

        def read(session: TokenSession) -> bytes:
            # Modules that keep no public object have the public key in the private one.
            for kind in reversed(HALVES):
                for found in session.find(kind, key_id):
                    if (public_key := read_public_key(found)) is not None:
                        return base.KeyRef.of(uri, public_key).spki
            raise KeyMissing("no public key")

        return self._call("read", sessions, read)

    def destroy(self, uri: str) -> None:
        sessions, key_id = self._locate(uri)

        def remove(session: TokenSession) -> None:
            halves = [found for kind in KINDS for found in session.find(kind, key_id)]
            if not halves:
                raise KeyMissing("neither half")
            session.login.handles.pop(key_id, None)
            session.login.wrapping_keys.pop(uri, None)
            for half in halves:
                half.destroy()

        self._call("remove", sessions, remove)

    def list_keys(self, label_prefix: str = "") -> list[base.StoredKey]:
        tokens = {self.main_label, *self.present_tokens()}
        found = [key for token in tokens for key in self.list_token(token, label_prefix)]
        return sorted(found, key=lambda key: key.uri)

    def list_token(self, token: str, label_prefix: str) -> list[base.StoredKey]:
        """List the keys of one token, as `list_keys()`; raises `KeyNotFound` for another environment's.

        Objects without CKA_ID are foreign, half-written, or what a killed process left: no keys.
        """

        def read(session: TokenSession) -> list[base.StoredKey]:
            labels: dict[bytes, dict[ObjectClass, str]] = {}
            for kind in KINDS:
                wanted = {Attribute.CLASS: kind, Attribute.TOKEN: True}
                stored: list[Any] = list(session.session.get_objects(wanted))
                for found in stored:
                    if found.id and found.label.startswith(label_prefix):
                        labels.setdefault(found.id, {})[kind] = found.label
            return [stored_key(token, key_id, found) for key_id, found in labels.items()]

        return self._call(
            "list", self._sessions(token), read, threads=self._generations, timeout=GENERATE_TIMEOUT
        )

    def check(self) -> None:
        self._call("touch", self._main, TokenSession.touch, timeout=CHECK_TIMEOUT)
        self.check_open()

    def check_open(self) -> None:
        """As `check()`, for the tokens that this process has logged in to."""
        for sessions in list(self._tokens.values()):
            if sessions.was_opened:
                self._call("touch", sessions, TokenSession.touch, timeout=CHECK_TIMEOUT)

    def present_tokens(self) -> Collection[str]:
        return self._call("list_tokens", self._main, lambda _: self._own_tokens())

    def find_tokens(self, wanted: str) -> list[str]:
        """Return the environment's tokens here, after a restart of the module if it lacks `wanted`."""
        if wanted:
            with suppress(base.KeyServiceUnavailable, base.KeyNotFound):
                self._call("touch", self._sessions(wanted), TokenSession.touch)
        with self._module.entered():
            return self._own_tokens()

    def _own_tokens(self) -> list[str]:
        labels, main = self._module.tokens(), self.main_label
        return [label for label in labels if label == main or base.is_shard(label, of=main)]

    def seems_to_serve(self, token: str) -> bool:
        sessions = self._sessions(token)
        return not sessions.breaker.is_open and not sessions.pin_refused

    def provision(self) -> int:
        self.make_tokens(self.wanted_shards, so_pin=self._config.so_pin)
        return len(self.known_shards())

    def make_tokens(self, labels: list[str], so_pin: str) -> int:
        """Make those of the tokens that are missing; raises `KeyNotFound` for another environment's."""
        own = [self.require_own(label) for label in labels]
        return make_tokens(self._module, own, so_pin=so_pin, user_pin=self._config.pin)

    def _sign_raw(self, uri: str, data: bytes, mechanism: Mechanism) -> bytes:
        sessions, key_id = self._locate(uri)

        def sign(session: TokenSession) -> bytes:
            try:
                signature: bytes = session.private_key(key_id).sign(data, mechanism=mechanism)
            except STALE_HANDLE:
                session.login.handles.pop(key_id, None)
                try:
                    signature = session.private_key(key_id).sign(data, mechanism=mechanism)
                except KeyMissing as error:
                    raise KeyVanished(str(error)) from error
            return signature

        return self._call("sign", sessions, sign)

    def _locate(self, uri: str) -> tuple[TokenSessions, bytes]:
        return self._sessions(self.token_of(uri)), parse(uri).id

    def _sessions(self, label: str) -> TokenSessions:
        """Return the sessions of one of the environment's tokens; raises `KeyNotFound` for another."""
        sessions = self._tokens.get(label)
        if sessions is None:
            self.require_own(label)
            with self._lock:
                fresh = TokenSessions(self._module, replace(self._config, label=label, so_pin=""))
                sessions = self._tokens.setdefault(label, fresh)
        return sessions

    def _call(
        self,
        name: str,
        token: TokenSessions,
        operation: Callable[[TokenSession], Result],
        *,
        threads: CallThreads | None = None,
        timeout: float = CALL_TIMEOUT,
    ) -> Result:
        """Run an operation in a call thread under the token's breaker; `name` is its label in the metrics."""
        if token.pin_refused:
            raise base.KeyServiceNotConfigured
        ticket = token.breaker.admit()
        if not self._module.is_started:
            timeout = max(timeout, START_TIMEOUT)
        try:
            with metrics.counted(metrics.HSM_CALLS, metrics.HSM_SECONDS, name):
                result = (threads or self._calls).run(
                    lambda: self._attempt(token, operation), timeout=timeout
                )
        except CallTimeout as error:
            logger.warning("Token %s: %s", token.label, error)
            token.breaker.failed(ticket)
            raise base.KeyServiceUnavailable from error
        except base.KeyServiceUnavailable:
            token.breaker.failed(ticket, pause=self._restart_pause())
            raise
        except base.KeyNotFound:
            token.breaker.succeeded()  # the token answered
            raise
        token.breaker.succeeded()
        return result

    def _claim_restart(self) -> bool:
        """Return whether the module may be restarted now for a key that was not found."""
        with self._lock:
            is_due = monotonic() >= self._restart_due_at
            if is_due:
                self._restart_due_at = monotonic() + self._restart_pause()
        return is_due

    def _restart_pause(self) -> float:
        return min(LONGEST_RESTART_PAUSE, RESTART_SHARE * self._module.restart_seconds)

    def _attempt(self, token: TokenSessions, operation: Callable[[TokenSession], Result]) -> Result:
        """Run the operation, and once more after a restart of the module if the token may be lost."""
        epoch = self._module.epoch
        try:
            return _use(token, operation)
        except KeyMissing as error:
            # SoftHSM 2.6 can overlook a key that another process made, or keep what it read half-written.
            if _answers(token) and (isinstance(error, KeyVanished) or not self._claim_restart()):
                raise base.KeyNotFound from error
        except PKCS11Error as error:
            logger.warning("Token %s failed (%s); restarting the module", token.label, type(error).__name__)
        self._module.restart(seen_epoch=epoch)
        try:
            return _use(token, operation)
        except KeyMissing as error:
            raise base.KeyNotFound from error
        except PKCS11Error as error:
            raise _unavailable(token, error) from error


def _use(token: TokenSessions, operation: Callable[[TokenSession], Result]) -> Result:
    """Run the operation; errors that a restart of the module cannot mend become those of the contract."""
    try:
        return token.use(operation)
    except PIN_REFUSED as error:
        name = type(error).__name__
        logger.error("Token %s refuses the PIN (%s); not trying it again in this process", token.label, name)
        token.pin_refused = True
        raise base.KeyServiceNotConfigured from error
    except REQUEST_REFUSED as error:
        raise _unavailable(token, error) from error


def _answers(token: TokenSessions) -> bool:
    """Return whether the token answers, so that a key that was not found does not exist."""
    try:
        token.use(TokenSession.touch)
    except PKCS11Error:
        return False
    return True


def _unavailable(token: TokenSessions, error: PKCS11Error) -> base.KeyServiceUnavailable:
    logger.warning("Token %s cannot serve: %s", token.label, type(error).__name__)
    return base.KeyServiceUnavailable()
