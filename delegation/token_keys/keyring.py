"""The public token keys of both environments in memory, so that verifying reads no row.

A ring is read again every `MAX_AGE_SECONDS`, and for an unknown `kid` at most once in `COOLDOWN_SECONDS`, so
that made-up kids cause no load. While its database does not answer, its last keys stay in use.
"""

import logging
import threading
import time

from cryptography.hazmat.primitives.asymmetric import ec
from django.db import Error
from django.utils.asyncio import async_unsafe

from compliance.core import environments
from compliance.core.environments import Environment
from delegation.errors import KeyRingUnavailable, RejectionReason, TokenRejected
from delegation.jose.jws import public_key
from delegation.lifecycle import KeyStatus
from delegation.models import TokenKey

log = logging.getLogger(__name__)

MAX_AGE_SECONDS = 30.0
COOLDOWN_SECONDS = 5.0


class KeyRing:
    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        self._keys: dict[str, ec.EllipticCurvePublicKey] = {}
        self._tried_at = float("-inf")
        self._has_read = False
        self.is_current = False

    def get(self, kid: str, *, max_age: float) -> ec.EllipticCurvePublicKey | None:
        """The key, read again if the last try is older than `max_age` seconds.

        One thread reads while the others use the keys at hand; only the first reading blocks them. Raises:
        SynchronousOnlyOperation in an event loop, where it would read or wait; that is no try.
        """
        if time.monotonic() - self._tried_at > max_age and (
            self._lock.acquire(blocking=False) or (not self._has_read and self._wait())
        ):
            try:
                if time.monotonic() - self._tried_at > max_age:
                    self._read()
            finally:
                self._lock.release()
        return self._keys.get(kid)

    @async_unsafe("Token keys are not waited for in an event loop.")
    def _wait(self) -> bool:
        return self._lock.acquire()

    def add(self, row: TokenKey) -> None:
        if row.kid not in self._keys:
            self._keys = {**self._keys, row.kid: public_key(row.public_jwk)}

    def _read(self) -> None:
        try:
            with environments.use(self._environment):
                rows = list(TokenKey.objects.exclude(status=KeyStatus.WITHDRAWN))
        except Error as error:
            self.is_current = False
            self._tried_at = time.monotonic()
            log.warning("token keys of %s not read: %s", self._environment.value, type(error).__name__)
        else:
            self._keys = {row.kid: public_key(row.public_jwk) for row in rows}
            self._has_read = self.is_current = True
            self._tried_at = time.monotonic()


_rings = {environment: KeyRing(environment) for environment in Environment}


def find(kid: str) -> tuple[Environment, ec.EllipticCurvePublicKey]:
    """The environment and key of `kid`; raises `TokenRejected(unknown_key)`, `KeyRingUnavailable`."""
    for max_age in (MAX_AGE_SECONDS, COOLDOWN_SECONDS):
        for environment, ring in _rings.items():
            if key := ring.get(kid, max_age=max_age):
                return environment, key
    if not all(ring.is_current for ring in _rings.values()):
        raise KeyRingUnavailable()
    raise TokenRejected(RejectionReason.UNKNOWN_KEY)


def add(row: TokenKey) -> None:
    _rings[environments.current()].add(row)


def forget() -> None:
    for ring in _rings.values():
        ring.forget()
