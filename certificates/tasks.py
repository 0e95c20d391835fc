"""What happens to certificates by the clock, and after a revocation; each is safe to run twice."""

import logging
from typing import Any
from uuid import UUID

from auditlog.vocabulary import Actor
from certificates import key_pool, services, unfinished
from certificates.key_pool import FILL
from certificates.publication import PUBLISH
from compliance.clock import now
from compliance.errors import Unavailable
from compliance.tasks import task

log = logging.getLogger(__name__)


@task(PUBLISH)
def publish_crl(*, authority_id: str, **kwargs: Any) -> None:
    """Publish the list of one CA if it is due; without the HSM the sweep tries again."""
    actor = Actor.system(PUBLISH)
    try:
        published = services.publish(authority_id=UUID(authority_id), actor=actor, now=now())
    except Unavailable as error:
        log.warning("revocation list of %s not published: %s", authority_id, error.message)
        return
    if published is None:
        log.info("revocation list of %s is up to date", authority_id)


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
    count = services.expire_due(now=now())
    if count:
        log.info("%d certificates expired", count)


@task(FILL)
def fill_key_pool(**kwargs: Any) -> None:
    """Make the keys that the next agents will need."""
    try:
        key_pool.fill(now=now())
    except Unavailable as error:
        log.warning("key pool not filled: %s", error.message)


@task("certificates.settle_unfinished")
def settle_unfinished(**kwargs: Any) -> None:
    """Settle issuances that a crash left unfinished."""
    try:
        unfinished.settle(now=now())
    except Unavailable as error:
        log.warning("unfinished issuances not settled: %s", error.message)
