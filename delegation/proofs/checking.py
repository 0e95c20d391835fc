"""The whole check of DPoP proofs, for one request or for a group of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from compliance.core.errors import ServiceError
from compliance.stores import trips
from compliance.stores.redis_cluster import Command
from compliance.stores.trips import Answers
from delegation.errors import NonceRequired, ProofRejected, ReplayStoreUnavailable
from delegation.jose import dpop
from delegation.jose.dpop import Proof
from delegation.proofs import nonces, replay


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


def check(
    *, proof: str, method: str, uri: str, access_token: str | None, nonce_required: bool, now: datetime
) -> Proof:
    """The proof of one request, used up by this call; whose key it is (`jkt`), the caller compares.

    Raises: ProofRejected, NonceRequired, ReplayStoreUnavailable.
    """
    (found,) = check_each([PresentedProof(proof, method, uri, access_token, nonce_required)], now=now)
    if isinstance(found, ServiceError):
        raise found
    return found


def proven_key(*, proof: str | None, path: str, now: datetime) -> str | None:
    """The thumbprint that the `DPoP` header of a request for a token proves; None without the header.

    `path` is that of the request, a POST, percent-encoded: the public address of the service goes before it,
    whatever name a proxy was asked for. Raises: as `check`.
    """
    (found,) = proven_keys([(proof, path)], now=now)
    if isinstance(found, ServiceError):
        raise found
    return found


def proven_keys(
    requests: Sequence[tuple[str | None, str]], *, now: datetime
) -> list[str | ServiceError | None]:
    """What `proven_key` returns or raises for each proof and path, in order; Redis is asked once."""
    presented = [
        PresentedProof(
            proof, "POST", f"{settings.BASE_URL}{path}", nonce_required=settings.DPOP_NONCE_REQUIRED
        )
        for proof, path in requests
        if proof is not None
    ]
    found = iter(check_each(presented, now=now))
    checked = [None if proof is None else next(found) for proof, _ in requests]
    return [one.jkt if isinstance(one, Proof) else one for one in checked]


def check_each(presented: Sequence[PresentedProof], *, now: datetime) -> list[Proof | ServiceError]:
    """The proof of each request, in order, or what `check` would raise; Redis is asked once."""
    begun = begin_check(presented, now=now)
    return begun.settled(trips.answers_to(begun.commands))


def begin_check(presented: Sequence[PresentedProof], *, now: datetime) -> "ProofCheck":
    """Check proofs as far as possible without Redis; `settled()` ends the check, by Redis's answers."""
    return ProofCheck([_checked(one, now) for one in presented])


@dataclass(frozen=True, slots=True)
class ProofCheck:
    """A check that still lacks the check for replay; `found` has each proof or its error, in order.

    A caller sends `commands` to Redis and passes the answers to `settled()`.
    """

    found: Sequence[Proof | ServiceError]

    @property
    def commands(self) -> list[Command]:
        """The commands that mark the sound proofs as used, one for each."""
        return [replay.command_to_mark(one) for one in self.found if isinstance(one, Proof)]

    def settled(self, answers: Answers) -> list[Proof | ServiceError]:
        """The proof of each request, in order, or what `check` would raise, by the answers to `commands`."""
        count = sum(isinstance(one, Proof) for one in self.found)
        try:
            are_new = iter(replay.are_new(answers, count) if count else [])
        except ReplayStoreUnavailable as error:
            return [error if isinstance(one, Proof) else one for one in self.found]
        return [_once(one, next(are_new)) if isinstance(one, Proof) else one for one in self.found]


def _checked(one: PresentedProof, now: datetime) -> Proof | ServiceError:
    try:
        proof = dpop.check(one.proof, method=one.method, uri=one.uri, access_token=one.access_token, now=now)
    except ProofRejected as rejected:
        return rejected
    if one.nonce_required and (proof.nonce is None or not nonces.is_accepted(proof.nonce, now=now)):
        return NonceRequired("the proof must carry the nonce given here", nonce=nonces.current_nonce(now=now))
    return proof


def _once(proof: Proof, is_new: bool) -> Proof | ServiceError:
    return proof if is_new else ProofRejected("the proof was used before")
