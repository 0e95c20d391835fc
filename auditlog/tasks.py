"""Celery tasks of the audit log; each is safe to run twice and at the same time."""

import logging
import time
from typing import Any

from django.conf import settings

from auditlog.disposal import retention
from auditlog.errors import LogKeysMissing, TreeDamaged, WitnessPolicyInvalid
from auditlog.sealing import keys, sealer
from auditlog.services import SEAL
from auditlog.submitting import gathering
from auditlog.tlog.lines import TlogError
from auditlog.vocabulary import Actor
from compliance.core.clock import now
from compliance.core.errors import Unavailable
from compliance.core.tasks import enqueue, task
from compliance.stores import wakeups
from compliance.stores.session_locks import TurnLock, locked

log = logging.getLogger(__name__)

COSIGN = "auditlog.cosign"
PAUSE_SECONDS = wakeups.QUIET_SECONDS  # between rounds, so that a busy log is sealed in batches
TURN_SECONDS = 10.0


@task(SEAL)
def seal(**kwargs: Any) -> None:
    """Seal and sign until the queue is empty; after `TURN_SECONDS` another task goes on."""
    for _ in range(2):
        with locked(TurnLock.SEALING) as is_mine:
            if is_mine:
                _seal_until_empty(time.monotonic() + TURN_SECONDS)
                return
        # The other task may just have looked at the queue for the last time.
        time.sleep(PAUSE_SECONDS)


def _seal_until_empty(end: float) -> None:
    """Seal until the queue is empty, or ask for another task at `end` (monotonic seconds).

    After it answers it looks once more: what committed before the answer asked for no task.
    """
    has_answered = False
    while (sealed := _seal_and_sign()) or not has_answered:
        if time.monotonic() > end:
            enqueue(SEAL)
            return
        has_answered = not sealed
        if has_answered:
            wakeups.answer(SEAL)
        time.sleep(PAUSE_SECONDS)


@task("auditlog.drop_expired")
def drop_expired(**kwargs: Any) -> None:
    """Record changes of the retention; drop contents past it, and private halves of retired keys."""
    actor = Actor.system("auditlog.drop_expired")
    retention.record_settings(actor=actor, now=now())
    if dropped := retention.drop_expired(actor=actor, now=now()):
        log.info("contents of %d audit entries dropped", dropped)
    keys.destroy_ended(now=now())


@task(COSIGN)
def cosign(**kwargs: Any) -> None:
    try:
        gathering.gather(now=now())
    except WitnessPolicyInvalid as error:
        log.critical("no cosignatures: %s", error.message)
    finally:
        wakeups.answer(COSIGN)


def _seal_and_sign() -> int:
    sealed = 0
    try:
        sealed = sealer.seal_queued()
        if sealed:
            wakeups.wake(wakeups.SEALED)
        if sealer.sign_head(now=now()) and settings.AUDIT_WITNESS_POLICY:
            wakeups.ask_for(COSIGN)
    except (Unavailable, LogKeysMissing) as error:
        log.warning("audit log sealed but not signed: %s", error.message)
    except (TreeDamaged, TlogError) as error:
        log.critical("audit log not sealed or signed: %s", error)
    return sealed
