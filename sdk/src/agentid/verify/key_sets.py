"""The service's public token keys, kept as long as the service allows and fetched again for unknown ones."""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import ec

from agentid import jose
from agentid.client.service import AsyncClient, Client
from agentid.errors import NotValid
from agentid.verify.proofs import PresentedProof
from agentid.verify.tokens import TokenRules, VerifiedToken, verify_token

MAX_AGE_SECONDS: Final = 600.0
COOLDOWN_SECONDS: Final = 30.0

Keys = Mapping[str, ec.EllipticCurvePublicKey]


def read_keys(jwks: Mapping[str, Any]) -> Keys:
    """The keys of a JWKS (RFC 7517 §5) by `kid`; others than P-256 for signatures are skipped."""
    found: dict[str, ec.EllipticCurvePublicKey] = {}
    entries = jwks.get("keys")
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict) or not isinstance(entry.get("kid"), str):
            continue
        if entry.get("use", "sig") == "sig" and entry.get("alg", "ES256") == "ES256":
            with suppress(NotValid):
                found[entry["kid"]] = jose.public_key(entry)
    return found


class KeyAges:
    """Which keys are at hand, and when to fetch them again; no I/O."""

    def __init__(self, keys: Keys | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.keys: Keys = keys or {}
        self._clock = clock
        self._fetched_at = clock() if keys else float("-inf")
        self._tried_at = self._fetched_at

    def must_fetch(self, kid: str) -> bool:
        """Whether the keys are too old, or lack this one and no fetch was tried just now."""
        now = self._clock()
        is_old = now - self._fetched_at > MAX_AGE_SECONDS
        if is_old or (kid not in self.keys and now - self._tried_at > COOLDOWN_SECONDS):
            self._tried_at = now
            return True
        return False

    def take(self, jwks: Mapping[str, Any]) -> None:
        self.keys, self._fetched_at = read_keys(jwks), self._clock()


class TokenKeys:
    """Verify tokens with keys that a client fetches when they are needed; safe to share between threads."""

    def __init__(self, client: Client, *, environment: str = "live") -> None:
        self._client, self._environment = client, environment
        self._ages, self._lock = KeyAges(), threading.Lock()

    def verify(
        self,
        token: str,
        *,
        rules: TokenRules,
        proof: PresentedProof | None = None,
        now: datetime | None = None,
    ) -> VerifiedToken:
        """Check a token now. Raises: NotValid; ServiceError or Unreachable if keys cannot be had."""
        kid, moment = jose.key_id(token, kind=jose.DELEGATION), now or datetime.now(UTC)
        with self._lock:
            if self._ages.must_fetch(kid):
                self._ages.take(self._client.delegation.jwks(environment=self._environment))
        return verify_token(token, keys=self._ages.keys, rules=rules, proof=proof, now=moment)


class AsyncTokenKeys:
    """`TokenKeys` for an event loop."""

    def __init__(self, client: AsyncClient, *, environment: str = "live") -> None:
        self._client, self._environment = client, environment
        self._ages, self._lock = KeyAges(), asyncio.Lock()

    async def verify(
        self,
        token: str,
        *,
        rules: TokenRules,
        proof: PresentedProof | None = None,
        now: datetime | None = None,
    ) -> VerifiedToken:
        """`TokenKeys.verify`, awaited."""
        kid, moment = jose.key_id(token, kind=jose.DELEGATION), now or datetime.now(UTC)
        async with self._lock:
            if self._ages.must_fetch(kid):
                self._ages.take(await self._client.delegation.jwks(environment=self._environment))
        return verify_token(token, keys=self._ages.keys, rules=rules, proof=proof, now=moment)
