"""Keys behind key hosts: the backend of every process that does not open the PKCS#11 module itself."""

import logging
import secrets
import threading
import time
import zlib
from typing import Final, TypeVar

from compliance.environments import Environment
from compliance.keys.base import (
    KeyBackend,
    KeyNotFound,
    KeyRef,
    KeyServiceNotConfigured,
    KeyServiceUnavailable,
    PublicKey,
    SignatureAlgorithm,
    StoredKey,
    require_rsa_size,
)
from compliance.keys.hosts import wire
from compliance.keys.hosts.line import HostAway, Line
from compliance.keys.hosts.wire import Answer, AnyAnswer, AnyRequest, Failed, Reason
from compliance.keys.shards import is_shard, shard_labels
from compliance.keys.uri import InvalidUri, parse

logger = logging.getLogger(__name__)

Expected = TypeVar("Expected", bound=Answer)

# Seconds; each more than the host itself gives the module, so that its own verdict comes first.
CALL_TIMEOUT: Final = 12.0
CHECK_TIMEOUT: Final = 5.0
SLOW_TIMEOUT: Final = 35.0
SEARCH_PAUSE: Final = 0.5
"""Between two searches of all hosts for a token that none has."""


class HostedBackend(KeyBackend):
    """Keys of one environment in the tokens of all hosts; who has which token is asked, and remembered.

    A token that several hosts have (their modules being clients of one HSM) is always used through the same
    one while that one is there.
    """

    def __init__(self, lines: list[Line], environment: Environment, main: str, *, shards: int = 0) -> None:
        self._lines = lines
        self._environment = environment
        self._main = main
        self._wanted = shard_labels(main, shards)
        self._places: dict[str, list[Line]] = {}
        self._lock = threading.Lock()
        self._search_at = 0.0

    def generate_rsa(self, bits: int = 2048, *, label: str, spread: bool = False) -> KeyRef:
        require_rsa_size(bits)
        token = self._shard() if spread else self._main
        try:
            return self._generate(token, wire.GenerateRsa(self._environment, token, bits, label, spread))
        except KeyServiceUnavailable:
            other = self._shard(besides=token) if spread else token
            if other == token:
                raise
        return self._generate(other, wire.GenerateRsa(self._environment, other, bits, label, spread))

    def generate_ec(self, *, label: str) -> KeyRef:
        return self._generate(self._main, wire.GenerateEc(self._environment, label))

    def sign_digest(self, uri: str, digest: bytes, algorithm: SignatureAlgorithm) -> bytes:
        algorithm.require_digest(digest)
        request = wire.Sign(self._environment, uri, digest, algorithm)
        return _one(self._ask(self._token_of(uri), request), wire.Signature).value

    def public_key(self, uri: str) -> PublicKey:
        answers = self._ask(self._token_of(uri), wire.ReadPublic(self._environment, uri))
        return KeyRef(uri, _one(answers, wire.Public).spki).public_key

    def destroy(self, uri: str) -> None:
        request = wire.Destroy(self._environment, uri)
        _one(self._ask(self._token_of(uri), request, may_repeat=False), wire.Done)

    def list_keys(self, label_prefix: str = "") -> list[StoredKey]:
        found: list[StoredKey] = []
        for token in self._take_stock():
            request = wire.ListKeys(self._environment, token, label_prefix)
            for page in self._ask(token, request, timeout=SLOW_TIMEOUT, is_slow=True):
                found += _as(page, wire.Page).keys
        return sorted(found, key=lambda key: key.uri)

    def shards(self) -> dict[str, bool]:
        present = self._take_stock()
        return {label: label in present for label in self._wanted}

    def check(self) -> None:
        if self._main not in self._places:
            self._places_of(self._main)
        for line in self._lines:
            answers = _checked(line.call(wire.Check(self._environment), timeout=CHECK_TIMEOUT))
            _one(answers, wire.Done)

    def make_shards(self, *, so_pin: str, divided: bool) -> int:
        """Make the missing shards; how many were made. `divided`: each host has a place of its own for
        tokens, so they are spread over them; else one host makes all.
        """
        present = self._take_stock()
        missing = [label for label in self._wanted if label not in present]
        shares: dict[int, list[str]] = {}
        for label in missing:
            share = self._wanted.index(label) % len(self._lines) if divided else 0
            shares.setdefault(share, []).append(label)
        made = 0
        for number, labels in shares.items():
            request = wire.MakeTokens(self._environment, labels, so_pin)
            answers = self._lines[number].call(request, timeout=SLOW_TIMEOUT, is_slow=True, may_repeat=False)
            made += _one(_checked(answers), wire.Done).count
        if missing:
            self._take_stock(look_again=not divided)
        return made

    def _generate(self, token: str, request: wire.GenerateRsa | wire.GenerateEc) -> KeyRef:
        answers = self._ask(token, request, timeout=SLOW_TIMEOUT, is_slow=True, may_repeat=False)
        made = _one(answers, wire.Made)
        return KeyRef(made.uri, made.spki)

    def _shard(self, *, besides: str = "") -> str:
        """A shard picked at random among those whose host is there; the main token where there is none."""
        if self._wanted and not self._places:
            self._search()
        shards = [label for label in self._wanted if label in self._places and label != besides]
        serving = [label for label in shards if not all(line.is_away for line in self._places[label])]
        return secrets.choice(serving or shards or [besides or self._main])

    def _token_of(self, uri: str) -> str:
        try:
            token = parse(uri).token
        except InvalidUri as error:
            raise KeyNotFound from error
        if token != self._main and not is_shard(token, of=self._main):
            logger.warning("Key URI names no token of this environment")
            raise KeyNotFound
        return token

    def _ask(
        self,
        token: str,
        request: AnyRequest,
        *,
        timeout: float = CALL_TIMEOUT,
        is_slow: bool = False,
        may_repeat: bool = True,
    ) -> list[AnyAnswer]:
        """Ask the token's host, or another that has it when that one is away; as the contract says."""
        away: HostAway | None = None
        for _ in range(2):
            for line in self._places.get(token) or self._places_of(token):
                try:
                    answers = line.call(request, timeout=timeout, is_slow=is_slow, may_repeat=may_repeat)
                except HostAway as error:
                    away = error
                    continue
                if not _is_elsewhere(answers):
                    return _checked(answers)
                # The host was replaced by one with other tokens: all are asked anew.
                self._places.pop(token, None)
                break
            else:
                raise KeyServiceUnavailable from away
        raise KeyServiceUnavailable

    def _places_of(self, token: str) -> list[Line]:
        """The hosts that have a token, asked of all of them; raises `KeyServiceUnavailable`."""
        with self._lock:
            if token in self._places:
                return self._places[token]
            if time.monotonic() < self._search_at:
                raise KeyServiceUnavailable
            is_complete = self._search()
            if token not in self._places and is_complete:
                # All answered and none has it: it may have come (back) since their modules started.
                self._search(look_again=True)
            if token not in self._places:
                self._search_at = time.monotonic() + SEARCH_PAUSE
                logger.warning("No key host has the token %s", token)
                raise KeyServiceUnavailable
            return self._places[token]

    def _search(self, *, look_again: bool = False) -> bool:
        """Ask every host which tokens it has; whether all answered. What one had that is away stays known."""
        found: dict[str, list[Line]] = {}
        is_complete = True
        for line in self._lines:
            request = wire.TakeStock(self._environment, look_again)
            try:
                stock = _one(_checked(line.call(request, timeout=SLOW_TIMEOUT)), wire.Stock)
                labels = stock.labels
            except KeyServiceNotConfigured:
                raise
            except KeyServiceUnavailable:
                is_complete = False
                labels = [label for label, lines in self._places.items() if line in lines]
            for label in labels:
                found.setdefault(label, []).append(line)
        self._places = {label: _in_turn(label, lines) for label, lines in found.items()}
        return is_complete

    def _take_stock(self, *, look_again: bool = False) -> list[str]:
        """The environment's tokens that are there now; raises `KeyServiceUnavailable` when a host is away."""
        if not self._search(look_again=look_again):
            raise KeyServiceUnavailable
        return sorted(self._places)


def _in_turn(label: str, lines: list[Line]) -> list[Line]:
    """The hosts of one token, the one to be asked first in front: the same in every process."""
    first = zlib.crc32(label.encode()) % len(lines)
    return lines[first:] + lines[:first]


def _is_elsewhere(answers: list[AnyAnswer]) -> bool:
    return isinstance(answers[0], Failed) and answers[0].reason is Reason.NOT_HERE


def _checked(answers: list[AnyAnswer]) -> list[AnyAnswer]:
    """The answers, unless they tell of a failure: then its error of the contract."""
    failed = answers[0]
    if not isinstance(failed, Failed):
        return answers
    match failed.reason:
        case Reason.NOT_FOUND:
            raise KeyNotFound
        case Reason.NOT_CONFIGURED:
            raise KeyServiceNotConfigured
        case Reason.REFUSED:
            raise ValueError(failed.message)
        case _:
            raise KeyServiceUnavailable(retry_after=failed.retry_after)


def _one(answers: list[AnyAnswer], kind: type[Expected]) -> Expected:
    return _as(answers[0], kind)


def _as(answer: AnyAnswer, kind: type[Expected]) -> Expected:
    if not isinstance(answer, kind):
        logger.error("A key host answered %s for %s", type(answer).__name__, kind.__name__)
        raise KeyServiceUnavailable
    return answer
