"""The backend of processes that reach their tokens through key hosts."""

import logging
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final, TypeVar, TypeVarTuple

import msgspec
from django.conf import settings

from compliance.core.circuit_breaker import CircuitBreaker
from compliance.core.environments import Environment
from compliance.core.errors import Unavailable
from compliance.keys import base
from compliance.keys.backend import KeyBackend
from compliance.keys.base import KeyServiceUnavailable, main_token
from compliance.keys.hosts import protocol
from compliance.keys.hosts.protocol import KeyHostRequest, KeyHostResponse
from compliance.keys.pkcs11.backend import Pkcs11Backend
from compliance.keys.pkcs11.token import TokenSession
from compliance.observing import metrics

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

CONNECT_SECONDS: Final = 2.0
# Each exceeds what the host gives the module, so that the host's error comes first.
CALL_SECONDS: Final = 12.0
CHECK_SECONDS: Final = 5.0
SLOW_SECONDS: Final = 35.0
SECONDS: Final = {
    **dict.fromkeys(("check", "check_open"), CHECK_SECONDS),
    **dict.fromkeys(("generate", "generate_wrapped", "make_wrapping_key"), SLOW_SECONDS),
    **dict.fromkeys(("list_keys", "find_tokens", "make_tokens"), SLOW_SECONDS),
}
FIRST_PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 2.0  # a host that died is back by then
OUTAGES: Final = (KeyServiceUnavailable, base.KeyServiceNotConfigured)
"""Errors of the token, not of what it was asked for."""


class KeyHostAway(KeyServiceUnavailable):
    """The request was not sent: nothing listens, or the host failed just now."""


class KeyHostClient:
    def __init__(self, folder: Path, number: int, environment: Environment) -> None:
        self.number = number
        self._folder, self._environment = folder, environment
        self.reset_after_fork()
        base.reset_in_children.add(self)

    def reset_after_fork(self) -> None:
        self.breaker = CircuitBreaker(
            lambda seconds: KeyHostAway(retry_after=max(1, round(seconds))),
            failures=(OSError, KeyHostAway),
            first_pause=FIRST_PAUSE,
            longest_pause=LONGEST_PAUSE,
        )

    def is_there(self) -> bool:
        """Return whether the host responds now, even if its tokens are lost."""
        try:
            self.call(Pkcs11Backend.check_open)
        except Unavailable:
            return not self.breaker.is_open
        return True

    def call(
        self,
        operation: Callable[[TokenSession, *Arguments], Result]
        | Callable[[Pkcs11Backend, *Arguments], Result],
        *arguments: *Arguments,
        token: str = "",
    ) -> Result:
        """Return what an operation of `token`, or, without one, of the host's backend, returns in the host.

        Raises: the errors of `KeyBackend`, `KeyHostAway`.
        """
        name = operation.__name__
        request = KeyHostRequest(self._environment, token, name, msgspec.Raw(protocol.encode(arguments)))
        with metrics.counted(metrics.HSM_CALLS, metrics.HSM_SECONDS, f"host_{name}"):
            response = self._exchange(request)
            error = protocol.ERRORS[response.failure](response.message) if response.failure else None
            if isinstance(error, OUTAGES):
                error.retry_after = response.retry_after
                raise error
        if error is not None:
            raise error
        result: Result = protocol.decode(response.result, protocol.types_of(name)[1])
        return result

    def _exchange(self, request: KeyHostRequest) -> KeyHostResponse:
        try:
            with self.breaker.guarding():
                try:
                    connection = protocol.connect(self._folder, self.number, timeout=CONNECT_SECONDS)
                except OSError as error:
                    logger.warning("Key host %d is away: %s", self.number, error)
                    raise KeyHostAway from error
                with connection:
                    seconds = SECONDS.get(request.operation, CALL_SECONDS)
                    protocol.send(connection, request, seconds=seconds)
                    return protocol.receive(connection, KeyHostResponse, seconds=seconds)
        except OSError as error:
            logger.warning("Key host %d went away: %s", self.number, error or type(error).__name__)
            raise KeyServiceUnavailable from error


def key_host_backend(environment: Environment) -> "KeyHostBackend":
    """Make the environment's backend from settings; raises `KeyServiceNotConfigured`."""
    label, _ = main_token(environment)
    folder = Path(settings.PKCS11_HOST_FOLDER)
    return KeyHostBackend(
        [KeyHostClient(folder, number, environment) for number in range(settings.PKCS11_HOSTS)],
        label,
        shards=settings.PKCS11_SHARDS,
        so_pin=settings.PKCS11_SO_PIN,
        has_divided_tokens=bool(settings.PKCS11_HOST_CONFS),
    )


class KeyHostBackend(KeyBackend):
    """Keys of one environment in the tokens of all key hosts.

    Of several hosts that have a token (clients of one HSM), every process uses the first that is there.
    `has_divided_tokens`: each host has tokens of its own, so new shards are divided between the hosts.
    """

    def __init__(
        self,
        clients: list[KeyHostClient],
        main_label: str,
        *,
        shards: int = 0,
        so_pin: str = "",
        has_divided_tokens: bool = False,
    ) -> None:
        super().__init__(main_label, shards=shards)
        self._clients, self._so_pin = clients, so_pin
        self._has_divided_tokens = has_divided_tokens
        self._holders: dict[str, list[KeyHostClient]] = {}
        self._lock = threading.Lock()

    def perform(
        self, token: str, operation: Callable[[TokenSession, *Arguments], Result], *arguments: *Arguments
    ) -> Result:
        """Ask the token's host, or another host that has the token while that one is away."""
        away: KeyHostAway | None = None
        for client in self._holders.get(token) or self._find(token):
            try:
                return client.call(operation, *arguments, token=token)
            except KeyHostAway as error:
                away = error
        raise KeyServiceUnavailable from away

    def check(self) -> None:
        holders = self._holders.get(self.main_label) or self._find(self.main_label)
        for client in self._clients:
            client.call(Pkcs11Backend.check if client in holders else Pkcs11Backend.check_open)

    def problems(self) -> list[str]:
        absent = [client.number for client in self._clients if not client.is_there()]
        return [f"key host {number} does not respond" for number in absent] or super().problems()

    def present_tokens(self) -> Collection[str]:
        if not self._search():
            raise KeyServiceUnavailable
        return self._holders

    def known_shards(self) -> list[str]:
        if self.wanted_shards and not self._holders:
            self._search()
        return [label for label in self.wanted_shards if label in self._holders]

    def seems_to_serve(self, token: str) -> bool:
        return not all(client.breaker.is_open for client in self._holders[token])

    def provision(self) -> int:
        present = self.present_tokens()
        missing = [label for label in self.wanted_shards if label not in present]
        if missing and self._so_pin:
            hosts = self._clients if self._has_divided_tokens else self._clients[:1]
            for number, client in enumerate(hosts):
                share = [label for label in missing if self.wanted_shards.index(label) % len(hosts) == number]
                client.call(Pkcs11Backend.make_tokens, share, self._so_pin)
            self._search(wanted="" if self._has_divided_tokens else missing[0])
        return len(self.known_shards())

    def _find(self, token: str) -> list[KeyHostClient]:
        """Search all hosts for a token; raises `KeyServiceUnavailable` if none has it."""
        with self._lock:
            if token in self._holders:
                return self._holders[token]
            if self._search() and token not in self._holders:
                # The token may have been made or restored since the hosts started their modules.
                self._search(wanted=token)
            if token not in self._holders:
                logger.warning("No key host has the token %s", token)
                raise KeyServiceUnavailable
            return self._holders[token]

    def _search(self, *, wanted: str = "") -> bool:
        """Ask each host for its tokens, new ones too if it lacks `wanted`; return whether all responded."""
        found: dict[str, list[KeyHostClient]] = {}
        is_complete = True
        for client in self._clients:
            try:
                labels = client.call(Pkcs11Backend.find_tokens, wanted)
            except KeyServiceUnavailable:
                is_complete = False
                labels = [label for label, holders in self._holders.items() if client in holders]
            for label in labels:
                found.setdefault(label, []).append(client)
        self._holders = found
        return is_complete
