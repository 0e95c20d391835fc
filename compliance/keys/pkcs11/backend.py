"""The backend of a process that loads the PKCS#11 module itself."""

import logging
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import Final, TypeVar, TypeVarTuple

from django.conf import settings
from pkcs11 import PKCS11Error

from compliance.core.environments import Environment
from compliance.keys.backend import KeyBackend
from compliance.keys.base import (
    KeyNotFound,
    KeyServiceNotConfigured,
    KeyServiceUnavailable,
    is_shard,
    main_token,
    reset_in_children,
)
from compliance.keys.pkcs11.call_threads import CallThreads, CallTimeout
from compliance.keys.pkcs11.module import Pkcs11Module, module_at
from compliance.keys.pkcs11.operations import generate, list_keys
from compliance.keys.pkcs11.provisioning import make_tokens
from compliance.keys.pkcs11.token import (
    PIN_REFUSED,
    REQUEST_REFUSED,
    KeyMissing,
    KeyVanished,
    TokenConfig,
    TokenSession,
    TokenSessions,
)
from compliance.keys.pkcs11.wrapping import generate_wrapped
from compliance.observing import metrics

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

SIGN_THREADS: Final = 4
GENERATE_THREADS: Final = 2
GENERATE_NICENESS: Final = 5  # signing gets more of the processor's time
CALL_TIMEOUT: Final = 10.0
GENERATE_TIMEOUT: Final = 30.0
SLOW: Final[Collection[object]] = (generate, generate_wrapped, list_keys)
"""Operations in the threads and with the timeout of generation."""
CHECK_TIMEOUT: Final = 3.0
START_TIMEOUT: Final = 30.0  # SoftHSM then reads every object of every token
# Looking for a lost token or key restarts the module, which delays all: for one part in so many of the time.
RESTART_SHARE: Final = 20
LONGEST_RESTART_PAUSE: Final = 60.0


def pkcs11_backend(environment: Environment) -> "Pkcs11Backend":
    """Make the environment's backend from settings; raises `KeyServiceNotConfigured`."""
    label, pin = main_token(environment)
    if not settings.PKCS11_MODULE:
        raise KeyServiceNotConfigured
    config = TokenConfig(label, pin, settings.PKCS11_SO_PIN)
    return Pkcs11Backend(module_at(settings.PKCS11_MODULE), config, shards=settings.PKCS11_SHARDS)


class Pkcs11Backend(KeyBackend):
    """Keys in tokens of a module, loaded at the first call; generation has threads of low priority."""

    def __init__(self, module: Pkcs11Module, main: TokenConfig, *, shards: int = 0) -> None:
        super().__init__(main.label, shards=shards)
        self._module = module
        self._config = main
        self._tokens = {main.label: TokenSessions(module, main)}
        self.reset_after_fork()
        reset_in_children.add(self)

    def reset_after_fork(self) -> None:
        self._lock = threading.Lock()
        self._restart_due_at = 0.0
        self.calls = CallThreads(size=SIGN_THREADS, name="keys-call")
        size, niceness = GENERATE_THREADS, GENERATE_NICENESS
        self._generations = CallThreads(size=size, name="keys-generate", niceness=niceness)

    def perform(
        self,
        token: str,
        operation: Callable[[TokenSession, *Arguments], Result],
        *arguments: *Arguments,
        timeout: float = CALL_TIMEOUT,
    ) -> Result:
        """Run an operation in a call thread under the token's breaker; its name is its label in metrics.

        `timeout` is in seconds; `SLOW` operations have `GENERATE_TIMEOUT`, and the module's start has more.
        """
        sessions, threads = self._sessions(token), self.calls
        if sessions.pin_refused:
            raise KeyServiceNotConfigured
        ticket = sessions.breaker.admit()
        if operation in SLOW:
            threads, timeout = self._generations, GENERATE_TIMEOUT
        if self._module.library is None:
            timeout = max(timeout, START_TIMEOUT)
        try:
            with metrics.counted(metrics.HSM_CALLS, metrics.HSM_SECONDS, operation.__name__):
                result = threads.run(
                    lambda: self._attempt(sessions, lambda session: operation(session, *arguments)),
                    timeout=timeout,
                )
        except CallTimeout as error:
            logger.warning("Token %s: %s", token, error)
            sessions.breaker.failed(ticket)
            raise KeyServiceUnavailable from error
        except KeyServiceUnavailable:
            sessions.breaker.failed(ticket, pause=self._restart_pause())
            raise
        except KeyNotFound:
            sessions.breaker.succeeded()  # the token answered
            raise
        sessions.breaker.succeeded()
        return result

    def check(self) -> None:
        self.perform(self.main_label, TokenSession.touch, timeout=CHECK_TIMEOUT)
        self.check_open()

    def check_open(self) -> None:
        """As `check()`, for the tokens that this process has logged in to."""
        for label, sessions in list(self._tokens.items()):
            if sessions.was_opened:
                self.perform(label, TokenSession.touch, timeout=CHECK_TIMEOUT)

    def present_tokens(self) -> Collection[str]:
        # In bounded time: the module has read its tokens before.
        self.perform(self.main_label, TokenSession.touch)
        return self.find_tokens("")

    def find_tokens(self, wanted: str) -> list[str]:
        """Return the environment's tokens here, after a restart of the module if it lacks `wanted`."""
        if wanted:
            with suppress(KeyServiceUnavailable, KeyNotFound):
                self.perform(wanted, TokenSession.touch)
        with self._module.entered():
            labels, main = self._module.tokens(), self.main_label
        return [label for label in labels if label == main or is_shard(label, of=main)]

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

    def _sessions(self, label: str) -> TokenSessions:
        """Return the sessions of one of the environment's tokens; raises `KeyNotFound` for another."""
        sessions = self._tokens.get(label)
        if sessions is None:
            self.require_own(label)
            with self._lock:
                fresh = TokenSessions(self._module, replace(self._config, label=label, so_pin=""))
                sessions = self._tokens.setdefault(label, fresh)
        return sessions

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
        is_second = False
        while True:
            epoch = self._module.epoch
            try:
                return token.use(operation)
            except PIN_REFUSED as error:
                name = type(error).__name__
                logger.error(
                    "Token %s refuses the PIN (%s); not trying it again in this process", token.label, name
                )
                token.pin_refused = True
                raise KeyServiceNotConfigured from error
            except KeyMissing as error:
                # SoftHSM 2.6 can overlook a key that another process made, or keep what it read half-written.
                if is_second or (
                    _answers(token) and (isinstance(error, KeyVanished) or not self._claim_restart())
                ):
                    raise KeyNotFound from error
            except PKCS11Error as error:
                name = type(error).__name__
                if is_second or isinstance(error, REQUEST_REFUSED):
                    logger.warning("Token %s cannot serve: %s", token.label, name)
                    raise KeyServiceUnavailable from error
                logger.warning("Token %s failed (%s); restarting the module", token.label, name)
            self._module.restart(seen_epoch=epoch)
            is_second = True


def _answers(token: TokenSessions) -> bool:
    """Return whether the token answers, so that a key that was not found does not exist."""
    try:
        token.use(TokenSession.touch)
    except PKCS11Error:
        return False
    return True
