"""The DPoP proofs used recently, in Redis, so that all processes together accept each proof once."""

import hashlib
import logging
from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum

from django.conf import settings
from redis.exceptions import RedisError

from compliance.observing import metrics
from compliance.stores import redis
from delegation.errors import ReplayStoreUnavailable
from delegation.jose.dpop import WINDOW, Proof

log = logging.getLogger(__name__)

REMEMBERED = 2 * WINDOW + timedelta(seconds=10)
"""A proof dated `WINDOW` ahead is valid for twice that; 10 s more allow for clocks that differ."""


class WithoutStore(StrEnum):
    """The values of DPOP_WITHOUT_REPLAY_STORE."""

    REFUSE = "refuse"
    ACCEPT = "accept"


def use_each(proofs: Sequence[Proof]) -> list[bool]:
    """Mark the proofs as used, in one round trip; return for each whether it was new.

    Raises: ReplayStoreUnavailable if Redis does not answer, unless DPOP_WITHOUT_REPLAY_STORE accepts that.
    """
    if not proofs:
        return []
    try:
        with redis.circuit.guarding():
            return _marked(proofs)
    except RedisError as error:
        log.warning("DPoP proofs not checked for replay: %s", type(error).__name__)
        if settings.DPOP_WITHOUT_REPLAY_STORE != WithoutStore.ACCEPT:
            raise ReplayStoreUnavailable() from error
        return [True] * len(proofs)


@metrics.timed(metrics.REDIS_SECONDS, metrics.REDIS_ERRORS, "dpop_proofs")
def _marked(proofs: Sequence[Proof]) -> list[bool]:
    """Set each proof's name if it is absent (SET NX); return for each whether it was."""
    kept = int(REMEMBERED.total_seconds() * 1000)
    answers = redis.together([("SET", _name(proof), b"", "NX", "PX", kept) for proof in proofs])
    return [answer is not None for answer in redis.checked(answers)]


def _name(proof: Proof) -> str:
    """The Redis key of a proof, in both environments the same; no two pairs of jkt and jti give one text."""
    text = f"{proof.jkt}{proof.jti}".encode("utf-8", "surrogatepass")
    return f"{settings.SERVICE_NAME}:dpop:{hashlib.sha256(text).hexdigest()}"
