"""Periodic work on certificates, and publication after a revocation; every task is safe to run twice."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from auditlog.vocabulary import Actor
from certificates import services
from certificates.issuing import issuance, key_pool, wrapped_keys
from certificates.issuing.key_pool import FILL
from certificates.lists import publication
from certificates.ocsp import responders
from certificates.renewing.services import RENEWALS
from certificates.services import PUBLISH, SWEEP
from compliance.core.clock import now
from compliance.core.errors import Unavailable
from compliance.core.tasks import enqueue, task, task_calling

log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.5
ROUNDS = 20

renew_of_blueprint = task_calling(RENEWALS.task, RENEWALS.run)
sweep_renewals = task_calling("certificates.sweep_renewals", RENEWALS.sweep)


@contextmanager
def _patience(failure: str) -> Iterator[None]:
    try:
        yield
    except Unavailable as error:
        log.warning("%s: %s", failure, error.message)


@task(PUBLISH)
def publish_crl(*, authority_id: str, **kwargs: Any) -> None:
    """Publish a CA's lists if due, and ask for the next round if more gathered; a sweep tries again."""
    with _patience(f"revocation lists of {authority_id} not published"):
        made = publication.publish(authority_id=UUID(authority_id), actor=Actor.system(PUBLISH), now=now())
        if made and publication.lists_are_due(authority_id=UUID(authority_id), now=now()):
            enqueue(PUBLISH, delay_seconds=PAUSE_SECONDS, authority_id=authority_id)


@task("certificates.publish_due_crls")
def publish_due_crls(**kwargs: Any) -> None:
    with _patience("revocation lists not published"):
        publication.publish_due(actor=Actor.system("certificates.publish_due_crls"), now=now())


@task(SWEEP)
def sweep_ends(**kwargs: Any) -> None:
    """Supersede renewed certificates whose overlap is over, mark expired and announce ending ones."""
    for sweep in (services.supersede_due, services.expire_due, services.announce_due):
        for _ in range(ROUNDS):
            if not (count := sweep(now=now())):
                break
            log.info("%s: %d certificates", sweep.__name__, count)


@task("certificates.maintain_responders")
def maintain_responders(**kwargs: Any) -> None:
    with _patience("OCSP responders not renewed"):
        responders.maintain(actor=Actor.system("certificates.maintain_responders"), now=now())


@task(FILL)
def fill_key_pool(**kwargs: Any) -> None:
    with _patience("key pool not filled"):
        key_pool.refill(now=now())


@task("certificates.settle_unfinished")
def settle_unfinished(**kwargs: Any) -> None:
    """Settle issuances that a crash left unfinished, and delete wrapped keys that nothing can use."""
    with _patience("unfinished issuances not settled"):
        issuance.settle(now=now())
    if deleted := wrapped_keys.delete_unnamed(now=now()):
        log.info("%d wrapped keys deleted", deleted)
