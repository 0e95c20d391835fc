"""Answers requests with this process's own tokens: the side of a key host that knows PKCS#11."""

import logging
import os
import threading
import time
from typing import Final

from django.conf import settings
from pkcs11 import PKCS11Error

from compliance.environments import Environment
from compliance.errors import Unavailable
from compliance.keys.base import KeyNotFound, KeyServiceNotConfigured, StoredKey
from compliance.keys.hosts import wire
from compliance.keys.hosts.wire import AnyAnswer, AnyRequest, Reason
from compliance.keys.lanes import Seats, step_back
from compliance.keys.module import module_at
from compliance.keys.pkcs11_backend import SIGN_LANES, Pkcs11Backend
from compliance.keys.provisioning import make_tokens
from compliance.keys.registry import direct_backend
from compliance.keys.shards import is_shard
from compliance.keys.uri import InvalidUri, parse

logger = logging.getLogger(__name__)

LEAST: Final = 19
"""The niceness of what nobody waits for."""
STUCK_SECONDS: Final = 60.0
"""A host all of whose calls into the module take longer has hung, and is replaced."""
LOOK_AGAIN_SECONDS: Final = 2.0
LOOK_AGAIN_FACTOR: Final = 20
"""Looking for a token that is away holds up those that are there: it gets a twentieth of the time at most."""


class NotHere(Exception):
    """The token is none of this host's."""


class Desk:
    """The tokens of both environments that this process's module has; all methods from any thread."""

    def __init__(self) -> None:
        self._module = module_at(settings.PKCS11_MODULE)
        self._lock = threading.Lock()
        self._backends: dict[Environment, Pkcs11Backend] = {}
        self._seats: list[Seats] = []
        self._seen: dict[Environment, set[str]] = {environment: set() for environment in Environment}
        self._look_again_at = 0.0

    def open(self) -> None:
        """Start the module, and have the keys' handles read, so that a key's first use need not search."""
        found = {environment: self._tokens_at_start(environment) for environment in Environment}
        threading.Thread(target=self._read_ahead, args=(found,), name="keys-read", daemon=True).start()

    def _tokens_at_start(self, environment: Environment) -> set[str]:
        try:
            return self._labels(environment)
        except Unavailable as error:
            logger.warning("The module has not started: %s", error.message)
            return set()

    def _read_ahead(self, found: dict[Environment, set[str]]) -> None:
        step_back(LEAST)
        for environment, labels in found.items():
            for label in sorted(labels):
                try:
                    self._backend(environment).read_ahead(label)
                except KeyServiceNotConfigured:
                    break  # a PIN that one token refuses is not tried on the others
                except Unavailable as error:
                    logger.warning("Keys of %s not read ahead: %s", label, error.message)

    def close(self) -> None:
        """Let calls come back, for a moment; later ones are refused."""
        self._module.close()

    def is_well(self) -> bool:
        """Whether calls into the module come back."""
        return not any(seats.stuck(longer_than=STUCK_SECONDS) for seats in self._seats)

    def answer(self, request: AnyRequest) -> list[AnyAnswer]:
        """What to send back: one answer, or the pages of a listing."""
        try:
            return self._answer(request)
        except NotHere:
            failed = wire.Failed(Reason.NOT_HERE)
        except KeyNotFound:
            failed = wire.Failed(Reason.NOT_FOUND)
        except KeyServiceNotConfigured:
            failed = wire.Failed(Reason.NOT_CONFIGURED)
        except Unavailable as error:
            failed = wire.Failed(Reason.UNAVAILABLE, retry_after=error.retry_after)
        except ValueError as error:
            failed = wire.Failed(Reason.REFUSED, message=str(error))
        except Exception:
            logger.exception("%s failed", type(request).__name__)
            failed = wire.Failed(Reason.UNAVAILABLE)
        return [failed]

    def _answer(self, request: AnyRequest) -> list[AnyAnswer]:
        match request:
            case wire.Sign():
                signer = self._holder_of(request.environment, request.uri)
                return [wire.Signature(signer.sign_digest(request.uri, request.digest, request.algorithm))]
            case wire.GenerateRsa():
                backend = self._with(request.environment, request.token)
                key = backend.generate_rsa_in(
                    request.token, request.bits, label=request.label, spread=request.spread
                )
                return [wire.Made(key.uri, key.spki)]
            case wire.GenerateEc():
                backend = self._with(request.environment, _main(request.environment))
                key = backend.generate_ec(label=request.label)
                return [wire.Made(key.uri, key.spki)]
            case wire.ReadPublic():
                holder = self._holder_of(request.environment, request.uri)
                return [wire.Public(holder.spki(request.uri))]
            case wire.Destroy():
                self._holder_of(request.environment, request.uri).destroy(request.uri)
                return [wire.Done()]
            case wire.ListKeys():
                backend = self._with(request.environment, request.token)
                return _pages(backend.list_keys_of(request.token, request.label_prefix))
            case wire.Check():
                self._check(request.environment)
                return [wire.Done()]
            case wire.TakeStock():
                return [self._take_stock(request)]
            case wire.MakeTokens():
                return [wire.Done(self._make_tokens(request))]

    def _check(self, environment: Environment) -> None:
        backend = self._backend(environment)
        if _main(environment) in self._seen[environment]:
            backend.check()
        else:
            backend.check_open()

    def _take_stock(self, request: wire.TakeStock) -> wire.Stock:
        if request.look_again:
            self._look_again()
        return wire.Stock(os.getpid(), sorted(self._labels(request.environment)))

    def _look_again(self) -> None:
        """Start the module anew, since it knows the tokens that were there when it started."""
        with self._lock:
            if time.monotonic() < self._look_again_at:
                return
            self._module.restart(seen_epoch=self._module.epoch)
            pause = max(LOOK_AGAIN_SECONDS, LOOK_AGAIN_FACTOR * self._module.restart_seconds)
            self._look_again_at = time.monotonic() + pause

    def _make_tokens(self, request: wire.MakeTokens) -> int:
        main = _main(request.environment)
        if not all(is_shard(label, of=main) for label in request.labels):
            raise ValueError("only shards of the environment's token are made")
        pin = settings.PKCS11_TOKENS[request.environment.value]["pin"]
        return make_tokens(self._module, request.labels, so_pin=request.so_pin, user_pin=pin)

    def _holder_of(self, environment: Environment, uri: str) -> Pkcs11Backend:
        try:
            return self._with(environment, parse(uri).token)
        except InvalidUri as error:
            raise KeyNotFound from error

    def _with(self, environment: Environment, token: str) -> Pkcs11Backend:
        """The environment's backend, if the token is one that this process has had; it may be away now."""
        if token not in self._seen[environment] and token not in self._labels(environment):
            raise NotHere
        return self._backend(environment)

    def _labels(self, environment: Environment) -> set[str]:
        """The environment's tokens that are there now."""
        main = _main(environment)
        try:
            with self._module.entered():
                found = {
                    label for label in self._module.tokens() if label == main or is_shard(label, of=main)
                }
        except PKCS11Error as error:
            logger.warning("The module's tokens can't be listed: %s", type(error).__name__)
            found = set()
        self._seen[environment] |= found
        return found

    def _backend(self, environment: Environment) -> Pkcs11Backend:
        backend = self._backends.get(environment)
        if backend is None:
            with self._lock:
                seats = Seats(size=SIGN_LANES)
                fresh = direct_backend(environment, runner=lambda: seats)
                backend = self._backends.setdefault(environment, fresh)
                if backend is fresh:
                    self._seats.append(seats)
        return backend


def _main(environment: Environment) -> str:
    return str(settings.PKCS11_TOKENS[environment.value]["label"])


def _pages(keys: list[StoredKey]) -> list[AnyAnswer]:
    starts = range(0, max(1, len(keys)), wire.PAGE)
    return [wire.Page(keys[start : start + wire.PAGE], start + wire.PAGE >= len(keys)) for start in starts]
