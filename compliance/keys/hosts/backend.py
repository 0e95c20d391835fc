"""The backend of processes that reach their tokens through key hosts."""

import logging
import threading
import zlib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

from django.conf import settings

from compliance.core.environments import Environment
from compliance.keys import base
from compliance.keys.base import AnyPublicKey, KeyRef, KeyServiceUnavailable, SignatureAlgorithm, StoredKey
from compliance.keys.hosts import messages
from compliance.keys.hosts.client import KeyHostAway, KeyHostClient, client_for
from compliance.keys.hosts.messages import AnyRequest
from compliance.keys.sharding import ShardedBackend, main_token

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


def key_host_backend(environment: Environment) -> "KeyHostBackend":
    """Make the environment's backend from settings; raises `KeyServiceNotConfigured`."""
    label, _ = main_token(environment)
    folder = Path(settings.PKCS11_HOST_FOLDER)
    return KeyHostBackend(
        [client_for(folder, number) for number in range(settings.PKCS11_HOSTS)],
        environment,
        label,
        shards=settings.PKCS11_SHARDS,
        so_pin=settings.PKCS11_SO_PIN,
        has_divided_tokens=bool(settings.PKCS11_HOST_CONFS),
    )


class KeyHostBackend(ShardedBackend):
    """Keys of one environment in the tokens of all key hosts.

    While it is there, every process uses the same host for a token that several hosts have (clients of one
    HSM). `has_divided_tokens`: each host has tokens of its own, so new shards are divided between the hosts.
    """

    def __init__(
        self,
        clients: list[KeyHostClient],
        environment: Environment,
        main_label: str,
        *,
        shards: int = 0,
        so_pin: str = "",
        has_divided_tokens: bool = False,
    ) -> None:
        super().__init__(main_label, shards=shards)
        self._clients, self._environment, self._so_pin = clients, environment, so_pin
        self._has_divided_tokens = has_divided_tokens
        self._holders: dict[str, list[KeyHostClient]] = {}
        self._lock = threading.Lock()

    def generate_in(self, token: str, bits: int, *, label: str, keep_public: bool) -> KeyRef:
        request = messages.GenerateKey(self._environment, token, bits, label, keep_public)
        uri, spki = self._ask(token, request, tuple[str, bytes])
        return KeyRef(uri, spki)

    def sign_digest(self, uri: str, digest: bytes, algorithm: SignatureAlgorithm) -> bytes:
        algorithm.require_digest(digest)
        request = messages.SignDigest(self._environment, uri, digest, algorithm)
        return self._ask(self.token_of(uri), request, bytes)

    def sign_ed25519(self, uri: str, message: bytes) -> bytes:
        base.require_message(message)
        return self._ask(self.token_of(uri), messages.SignEd25519(self._environment, uri, message), bytes)

    def make_wrapping_key(self, *, label: str) -> base.WrappingKeyRef:
        request = messages.MakeWrappingKey(self._environment, label)
        return self._ask(self.main_label, request, base.WrappingKeyRef)

    def adopt_wrapping_key(self, uri: str) -> base.WrappingKeyRef:
        request = messages.AdoptWrappingKey(self._environment, uri)
        return self._ask(self.token_of(uri), request, base.WrappingKeyRef)

    def generate_wrapped(self, wrapping: base.WrappingKeyRef, *, label: str) -> base.WrappedKey:
        request = messages.GenerateWrapped(self._environment, wrapping, label)
        return self._ask(self.token_of(wrapping.uri), request, base.WrappedKey)

    def sign_wrapped(
        self, key: KeyRef, digest: bytes, algorithm: SignatureAlgorithm, read: Callable[[], base.WrappedKey]
    ) -> bytes:
        if not algorithm.is_rsa:
            raise ValueError(f"Wrapped keys are RSA keys, which do not sign {algorithm}")
        algorithm.require_digest(digest)
        quick = messages.SignUnwrapped(self._environment, key, digest, algorithm)
        # An empty text: the host has not unwrapped the key.
        if signature := self._ask(self.token_of(key.uri), quick, bytes, key=key.uri):
            return signature
        wrapped = read()
        request = messages.UnwrapAndSign(self._environment, wrapped, digest, algorithm)
        return self._ask(self.token_of(wrapped.wrapping.uri), request, bytes, key=key.uri)

    def wrap_anew(self, wrapped: base.WrappedKey, to: base.WrappingKeyRef) -> base.WrappedKey:
        request = messages.WrapAnew(self._environment, wrapped, to)
        return self._ask(self.token_of(wrapped.wrapping.uri), request, base.WrappedKey)

    def public_key(self, uri: str) -> AnyPublicKey:
        request = messages.ReadPublicKey(self._environment, uri)
        return base.read_spki(self._ask(self.token_of(uri), request, bytes))

    def destroy(self, uri: str) -> None:
        self._ask(self.token_of(uri), messages.DestroyKey(self._environment, uri), type(None))

    def list_keys(self, label_prefix: str = "") -> list[StoredKey]:
        found: list[StoredKey] = []
        for token in self.present_tokens():
            request = messages.ListToken(self._environment, token, label_prefix)
            found += self._ask(token, request, list[StoredKey])
        return sorted(found, key=lambda key: key.uri)

    def check(self) -> None:
        holders = self._holders.get(self.main_label) or self._find(self.main_label)
        for client in self._clients:
            client.call(messages.CheckTokens(self._environment, client in holders), type(None))

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
        return not all(client.is_away for client in self._holders[token])

    def provision(self) -> int:
        present = self.present_tokens()
        missing = [label for label in self.wanted_shards if label not in present]
        if missing and self._so_pin:
            hosts = self._clients if self._has_divided_tokens else self._clients[:1]
            for number, client in enumerate(hosts):
                share = [label for label in missing if self.wanted_shards.index(label) % len(hosts) == number]
                client.call(messages.MakeTokens(self._environment, share, self._so_pin), int)
            self._search(wanted="" if self._has_divided_tokens else missing[0])
        return len(self.known_shards())

    def _ask(self, token: str, request: AnyRequest, result: type[Result], *, key: str = "") -> Result:
        """Ask the token's host, or another host that has the token while that one is away.

        Hosts that share a token divide the wrapped keys in it between them: each `key` has one that is asked
        first, so that few hosts unwrap it.
        """
        away: KeyHostAway | None = None
        holders = self._holders.get(token) or self._find(token)
        for client in _rotated(key, holders) if key else holders:
            try:
                return client.call(request, result)
            except KeyHostAway as error:
                away = error
        raise KeyServiceUnavailable from away

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
        request = messages.FindTokens(self._environment, wanted)
        for client in self._clients:
            try:
                labels = client.call(request, list[str])
            except KeyServiceUnavailable:
                is_complete = False
                labels = [label for label, holders in self._holders.items() if client in holders]
            for label in labels:
                found.setdefault(label, []).append(client)
        self._holders = {label: _rotated(label, clients) for label, clients in found.items()}
        return is_complete


def _rotated(label: str, clients: list[KeyHostClient]) -> list[KeyHostClient]:
    """Order hosts by the name of a token or key: the same in every process, another in front for another."""
    first = zlib.crc32(label.encode()) % len(clients)
    return clients[first:] + clients[:first]
