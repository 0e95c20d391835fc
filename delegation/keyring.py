"""The public token keys of both environments in this process's memory, so that verifying reads no row.

A ring is read from its database when it is `MAX_AGE` old, and for an unknown `kid` at most once in
`COOLDOWN`: whoever makes up kids causes no load. While a database is away its last ring goes on serving;
only an unknown key is then an error (503) and not an answer, since it may be one that was just published.
"""

import logging
import threading
import time
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric import ec
from django.db import Error

from compliance import environments
from compliance.environments import Environment
from delegation.errors import KeyRingUnavailable
from delegation.jwks import public_key
from delegation.models import TokenKey
from delegation.rejections import Reason, TokenRejected

log = logging.getLogger(__name__)

MAX_AGE_SECONDS = 30.0
COOLDOWN_SECONDS = 5.0


@dataclass(frozen=True)
class VerificationKey:
    """A key and the environment whose tokens it signs."""

    environment: Environment
    key: ec.EllipticCurvePublicKey


class KeyRing:
    """The keys of one environment by `kid`."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        """Start afresh."""
        self._keys: dict[str, VerificationKey] = {}
        self._tried_at = float("-inf")
        self._has_read = False
        self.is_current = False

    def get(self, kid: str, *, max_age: float) -> VerificationKey | None:
        """The key, after a reading if the last try is older than `max_age` seconds.

        One thread reads while the others go on with what they have; only the first reading is waited for.
        """
        if time.monotonic() - self._tried_at > max_age and self._lock.acquire(blocking=not self._has_read):
            try:
                if time.monotonic() - self._tried_at > max_age:
                    self._read()
            finally:
                self._lock.release()
        return self._keys.get(kid)

    def learn(self, row: TokenKey) -> None:
        """Know a key at once in the process that signs with it."""
        if row.kid not in self._keys:
            self._keys = {**self._keys, row.kid: self._entry(row)}

    def _read(self) -> None:
        try:
            with environments.use(self._environment):
                rows = list(TokenKey.objects.trusted().order_by("published_at", "id"))
        except Error as error:
            self.is_current = False
            log.warning("token keys of %s not read: %s", self._environment.value, type(error).__name__)
        else:
            self._keys = {row.kid: self._entry(row) for row in rows}
            self._has_read = self.is_current = True
        finally:
            self._tried_at = time.monotonic()

    def _entry(self, row: TokenKey) -> VerificationKey:
        return VerificationKey(self._environment, public_key(row.public_jwk))


_rings = {environment: KeyRing(environment) for environment in Environment}


def find(kid: str) -> VerificationKey:
    """The key of a token of either environment; `TokenRejected(unknown_key)`, or 503 (see the module)."""
    found = _in_any_ring(kid, MAX_AGE_SECONDS) or _in_any_ring(kid, COOLDOWN_SECONDS)
    if found is not None:
        return found
    if not all(ring.is_current for ring in _rings.values()):
        raise KeyRingUnavailable()
    raise TokenRejected(Reason.UNKNOWN_KEY)


def _in_any_ring(kid: str, max_age: float) -> VerificationKey | None:
    return next(filter(None, (ring.get(kid, max_age=max_age) for ring in _rings.values())), None)


def learn(row: TokenKey) -> None:
    """Make the current environment's ring know `row`."""
    _rings[environments.current()].learn(row)


def forget() -> None:
    """Empty the rings; for tests, and after a key was withdrawn in this process."""
    for ring in _rings.values():
        ring.forget()
