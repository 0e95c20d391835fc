"""DPoP proofs of requests: whether each holds, is new, and carries a nonce where one is required.

A nonce is stored nowhere: it is an HMAC of the time, rounded, under a key of the environment. Every process
with the same ENCRYPTION_KEYS makes and accepts the same ones, in their interval and in the next.
"""

import hashlib
import hmac
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from redis.exceptions import RedisError

from compliance.core import environments
from compliance.core.encodings import b64url_encode
from compliance.core.encryption import derived_keys
from compliance.core.errors import ServiceError
from compliance.stores import asking
from compliance.stores.asking import Answers
from compliance.stores.redis import Command
from delegation.errors import NonceRequired, ProofRejected, ReplayStoreUnavailable
from delegation.jose import dpop
from delegation.jose.dpop import WINDOW, Proof, token_hash

log = logging.getLogger(__name__)

INTERVAL_SECONDS = 120
REMEMBERED = 2 * WINDOW + timedelta(seconds=10)
"""A proof dated `WINDOW` ahead is valid for twice that; 10 s more allow for clocks that differ."""


@dataclass(frozen=True, slots=True)
class PresentedProof:
    """The `DPoP` header of a request, with what it must fit.

    `uri` is the request's, as its client wrote it; `access_token` the token it presents as proven, if any.
    """

    proof: str
    method: str
    uri: str
    access_token: str | None = None
    nonce_required: bool = False


def check(presented: PresentedProof, *, now: datetime) -> Proof:
    """The proof of one request, used up by this call; whose key it is (`jkt`), the caller compares.

    Raises: ProofRejected, NonceRequired, ReplayStoreUnavailable.
    """
    begun = begin_check([presented], now=now)
    (found,) = begun.settled(asking.answers_to(begun.commands))
    if isinstance(found, ServiceError):
        raise found
    return found


def use_once(*, issuer: str, jti: str, kept: timedelta) -> bool:
    """Use an assertion up, by its issuer and id; False if it was used within `kept` before.

    Raises: ReplayStoreUnavailable.
    """
    check = ProofCheck([Proof(token_hash(issuer), f"assertion {jti}", None)], kept)
    (found,) = check.settled(asking.answers_to(check.commands))
    if isinstance(found, ReplayStoreUnavailable):
        raise found
    return isinstance(found, Proof)


def proven_key(*, proof: str | None, path: str, now: datetime) -> str | None:
    """The thumbprint that the `DPoP` header of a request for a token proves; None without the header.

    `path` is that of the request, a POST, percent-encoded: the public address of the service goes before it,
    whatever name a proxy was asked for. Raises: as `check`.
    """
    if proof is None:
        return None
    uri, is_nonce_required = f"{settings.BASE_URL}{path}", settings.DPOP_NONCE_REQUIRED
    return check(PresentedProof(proof, "POST", uri, nonce_required=is_nonce_required), now=now).jkt


@dataclass(frozen=True, slots=True)
class ProofCheck:
    """A check that still lacks the check for replay; `found` has each proof or its error, in order.

    A caller sends `commands` to Redis and passes the answers to `settled()`. `kept`: how long a proof counts.
    """

    found: Sequence[Proof | ServiceError]
    kept: timedelta = REMEMBERED

    @property
    def commands(self) -> list[Command]:
        """The commands that mark the sound proofs as used, one for each: set its name if that is absent."""
        kept = int(self.kept.total_seconds() * 1000)
        return [("SET", name_of(one), b"", "NX", "PX", kept) for one in self.found if isinstance(one, Proof)]

    def settled(self, answers: Answers) -> list[Proof | ServiceError]:
        """The proof of each request, in order, or what `check` would raise, by the answers to `commands`."""
        if isinstance(answers, RedisError):
            log.warning("DPoP proofs not checked for replay: %s", type(answers).__name__)
            return [ReplayStoreUnavailable() if isinstance(one, Proof) else one for one in self.found]
        answered = iter(answers)
        return [
            ProofRejected("the proof was used before")
            if isinstance(one, Proof) and next(answered) is None
            else one
            for one in self.found
        ]


def begin_check(presented: Sequence[PresentedProof], *, now: datetime) -> ProofCheck:
    """Check proofs as far as possible without Redis; `settled()` ends the check, by Redis's answers."""
    return ProofCheck([_checked(one, now) for one in presented])


def _checked(one: PresentedProof, now: datetime) -> Proof | ServiceError:
    try:
        proof = dpop.check(one.proof, method=one.method, uri=one.uri, access_token=one.access_token, now=now)
    except ProofRejected as rejected:
        return rejected
    if one.nonce_required and (proof.nonce is None or not is_accepted(proof.nonce, now=now)):
        return NonceRequired("the proof must carry the nonce given here", nonce=current_nonce(now=now))
    return proof


def name_of(proof: Proof) -> str:
    """The Redis key of a proof, in both environments the same; no two pairs of jkt and jti give one text."""
    text = f"{proof.jkt}{proof.jti}".encode("utf-8", "surrogatepass")
    return f"{settings.SERVICE_NAME}:dpop:{hashlib.sha256(text).hexdigest()}"


def current_nonce(*, now: datetime) -> str:
    """The nonce that the current environment hands out at `now`, for the header `DPoP-Nonce`."""
    return next(_nonces(now))


def is_accepted(nonce: str, *, now: datetime) -> bool:
    """Return whether the nonce is the current environment's, of this interval or the last."""
    given = nonce.encode("utf-8", "surrogatepass")
    return any(hmac.compare_digest(given, known.encode()) for known in _nonces(now))


def _nonces(now: datetime) -> Iterator[str]:
    """The accepted nonces, the one to hand out first."""
    interval = int(now.timestamp()) // INTERVAL_SECONDS
    for key in derived_keys(f"dpop nonce {environments.current().value}"):
        for number in (interval, interval - 1):
            yield b64url_encode(hmac.digest(key, number.to_bytes(8, "big"), "sha256"))
