"""The DPoP proofs used recently, in Redis, so that all processes together accept each proof once."""

import hashlib
import logging
from datetime import timedelta
from enum import StrEnum

from django.conf import settings
from redis.exceptions import RedisError

from compliance.stores.redis_cluster import Command
from compliance.stores.trips import Answers
from delegation.errors import ReplayStoreUnavailable
from delegation.jose.dpop import WINDOW, Proof

log = logging.getLogger(__name__)

REMEMBERED = 2 * WINDOW + timedelta(seconds=10)
"""A proof dated `WINDOW` ahead is valid for twice that; 10 s more allow for clocks that differ."""


class WithoutStore(StrEnum):
    """The values of DPOP_WITHOUT_REPLAY_STORE."""

    REFUSE = "refuse"
    ACCEPT = "accept"


def command_to_mark(proof: Proof) -> Command:
    """The command that marks a proof as used: it sets the proof's name if that is absent."""
    kept = int(REMEMBERED.total_seconds() * 1000)
    return ("SET", _name(proof), b"", "NX", "PX", kept)


def are_new(answers: Answers, count: int) -> list[bool]:
    """Whether each of `count` proofs was new, in order, by the answers to the commands that mark them.

    Raises: ReplayStoreUnavailable if Redis did not answer, unless DPOP_WITHOUT_REPLAY_STORE accepts that.
    """
    if not isinstance(answers, RedisError):
        return [answer is not None for answer in answers]
    log.warning("DPoP proofs not checked for replay: %s", type(answers).__name__)
    if settings.DPOP_WITHOUT_REPLAY_STORE != WithoutStore.ACCEPT:
        raise ReplayStoreUnavailable() from answers
    return [True] * count


def _name(proof: Proof) -> str:
    """The Redis key of a proof, in both environments the same; no two pairs of jkt and jti give one text."""
    text = f"{proof.jkt}{proof.jti}".encode("utf-8", "surrogatepass")
    return f"{settings.SERVICE_NAME}:dpop:{hashlib.sha256(text).hexdigest()}"
