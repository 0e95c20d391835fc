"""What happens to certificates by the clock, and after a revocation; each is safe to run twice."""

import logging
import time
from typing import Any
from uuid import UUID

from auditlog.vocabulary import Actor
from certificates import key_pool, responders, services, unfinished
from certificates.key_pool import FILL
from certificates.publication import PUBLISH
from compliance.clock import now
from compliance.errors import Unavailable
from compliance.tasks import enqueue, task

log = logging.getLogger(__name__)

GATHER_SECONDS = 0.5
EXPIRY_ROUNDS = 20


@task(PUBLISH)
def publish_crl(*, authority_id: str, **kwargs: Any) -> None:
    """Publish the lists of one CA if they are due; without the HSM the sweep tries again.

    In a storm of revocations one worker holds the lease and gathers for a moment, the others go at once; what
    comes after it has begun is made up for by the task that it rings for at its end.
    """
    identifier = UUID(authority_id)
    try:
        lease = services.claim_due_lists(authority_id=identifier, now=now())
        if lease is None:
            return
        if services.has_fresh_list(authority_id=identifier, now=now()):
            time.sleep(GATHER_SECONDS)
        services.publish_claimed(lease=lease, actor=Actor.system(PUBLISH), now=now())
    except Unavailable as error:
        log.warning("revocation lists of %s not published: %s", authority_id, error.message)
        return
    if services.lists_are_due(authority_id=identifier, now=now()):
        enqueue(PUBLISH, authority_id=authority_id)


@task("certificates.publish_due_crls")
def publish_due_crls(**kwargs: Any) -> None:
    """Publish what is due and was not asked for, or could not be made then."""
    try:
        services.publish_due(actor=Actor.system("certificates.publish_due_crls"), now=now())
    except Unavailable as error:
        log.warning("revocation lists not published: %s", error.message)


@task("certificates.expire")
def expire(**kwargs: Any) -> None:
    """Mark and announce certificates that are past their end."""
    for _ in range(EXPIRY_ROUNDS):
        count = services.expire_due(now=now())
        if not count:
            return
        log.info("%d certificates expired", count)


@task("certificates.maintain_responders")
def maintain_responders(**kwargs: Any) -> None:
    """Renew the OCSP responders that have spent half their life, remove the expired."""
    try:
        responders.maintain(actor=Actor.system("certificates.maintain_responders"), now=now())
    except Unavailable as error:
        log.warning("OCSP responders not renewed: %s", error.message)


@task(FILL)
def fill_key_pool(**kwargs: Any) -> None:
    """Make the keys that the next agents will need."""
    try:
        key_pool.refill(now=now())
    except Unavailable as error:
        log.warning("key pool not filled: %s", error.message)


@task("certificates.settle_unfinished")
def settle_unfinished(**kwargs: Any) -> None:
    """Settle issuances that a crash left unfinished."""
    try:
        unfinished.settle(now=now())
    except Unavailable as error:
        log.warning("unfinished issuances not settled: %s", error.message)
