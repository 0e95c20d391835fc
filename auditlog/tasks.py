"""Celery tasks of the audit log; each is safe to run twice and at the same time."""

import logging
import time
from typing import Any

from django.conf import settings

from auditlog.disposal import retention
from auditlog.errors import BeingVerified, LogKeysMissing, TreeDamaged, WitnessPolicyInvalid
from auditlog.sealing import keys, sealer
from auditlog.services import SEAL, SEALED
from auditlog.submitting import gathering
from auditlog.tlog.errors import TlogError
from auditlog.vocabulary import Actor
from compliance.core.clock import now
from compliance.core.errors import Unavailable
from compliance.core.tasks import enqueue, task
from compliance.stores import announcements, doorbell

log = logging.getLogger(__name__)

COSIGN = "auditlog.cosign"
PAUSE_SECONDS = doorbell.QUIET_SECONDS  # between rounds, so that a busy log is sealed in batches
TURN_SECONDS = 10.0


@task(SEAL)
def seal(**kwargs: Any) -> None:
    """Seal and sign until the queue is empty; after `TURN_SECONDS` another task goes on."""
    if not _take_turn():
        # The other task may just have looked at the queue for the last time.
        time.sleep(PAUSE_SECONDS)
        _take_turn()


def _take_turn() -> bool:
    """Seal unless another task does; return whether this one did."""
    with sealer.turn() as is_mine:
        if is_mine:
            _seal_until_empty(time.monotonic() + TURN_SECONDS)
    return is_mine


def _seal_until_empty(end: float) -> None:
    """Seal until the queue is empty, or ring again at `end` (monotonic seconds).

    After it answers the bell it looks once more: what committed before the answer did not ring.
    """
    has_answered = False
    while (sealed := _seal_and_sign()) or not has_answered:
        if time.monotonic() > end:
            enqueue(SEAL)
            return
        has_answered = not sealed
        if has_answered:
            doorbell.answered(SEAL)
        time.sleep(PAUSE_SECONDS)


@task("auditlog.drop_expired")
def drop_expired(**kwargs: Any) -> None:
    """Drop the contents of entries past their retention."""
    try:
        dropped = retention.drop_expired(actor=Actor.system("auditlog.drop_expired"), now=now())
    except BeingVerified as error:
        log.info("expired contents are left to the next run: %s", error.message)
        return
    if dropped:
        log.info("contents of %d audit entries dropped", dropped)


@task(COSIGN)
def cosign(**kwargs: Any) -> None:
    """Ask witnesses for cosignatures of the newest checkpoint."""
    try:
        gathering.gather(now=now())
    except WitnessPolicyInvalid as error:
        log.critical("no cosignatures: %s", error.message)
    finally:
        doorbell.answered(COSIGN)


@task("auditlog.destroy_ended_keys")
def destroy_ended_keys(**kwargs: Any) -> None:
    """Destroy the private halves of retired log keys."""
    keys.destroy_ended(now=now())


def _seal_and_sign() -> int:
    """Seal one round and sign the head; return how many entries it sealed."""
    sealed = 0
    try:
        sealed = sealer.seal_queued()
        if sealed:
            announcements.announce(SEALED)
        if sealer.sign_head(now=now()) and settings.AUDIT_WITNESS_POLICY:
            doorbell.ring(COSIGN)
    except (Unavailable, LogKeysMissing) as error:
        log.warning("audit log sealed but not signed: %s", error.message)
    except (TreeDamaged, TlogError) as error:
        log.critical("audit log not sealed or signed: %s", error)
    return sealed
