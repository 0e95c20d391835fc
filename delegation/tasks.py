"""Periodic work on token keys and the rows of issued tokens, and the work on stops and access reviews."""

from typing import Any

from django.conf import settings

from auditlog.vocabulary import Actor
from compliance.core.clock import now
from compliance.core.tasks import task
from delegation.models import IssuedCredential, IssuedToken
from delegation.reviews import services as reviews
from delegation.reviews.services import REVIEWS
from delegation.stops.services import STOPS
from delegation.token_keys import keys

FORGOTTEN_BATCHES = 100
MAINTAIN = "delegation.maintain_keys"


@task(MAINTAIN)
def maintain_keys(**kwargs: Any) -> None:
    """Promote, publish and destroy token keys as they become due."""
    keys.maintain(lifetime=settings.TOKEN_KEY_LIFETIME, actor=Actor.system(MAINTAIN), now=now())


@task("delegation.forget_issued")
def forget_issued(**kwargs: Any) -> None:
    """Delete the rows of tokens and credentials that expired some time ago."""
    for model in (IssuedToken, IssuedCredential):
        for _ in range(FORGOTTEN_BATCHES):
            if not model.objects.delete_expired(now=now()):
                break


@task(STOPS.task)
def work_on_stop(*, job_id: str, **kwargs: Any) -> None:
    """Work on a portion of a stop or its release."""
    STOPS.run(job_id=job_id, now=now())


@task("stops.sweep")
def sweep_stops(**kwargs: Any) -> None:
    """Have unfinished stops gone on with, whose process died."""
    STOPS.sweep(now=now())


@task(REVIEWS.task)
def work_on_review(*, job_id: str, **kwargs: Any) -> None:
    """Carry out a portion of a review's decisions."""
    REVIEWS.run(job_id=job_id, now=now())


@task("reviews.sweep")
def sweep_reviews(**kwargs: Any) -> None:
    """Go on with decisions, escalate overdue reviews, and open those of a new quarter."""
    reviews.sweep(now=now())
