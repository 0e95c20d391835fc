"""Periodic work on token keys and the rows of issued tokens, and the work on stops and access reviews."""

from typing import Any

from django.conf import settings

from auditlog.vocabulary import Actor
from compliance.core.clock import now
from compliance.core.tasks import task, task_calling
from delegation.models import IssuedCredential, IssuedToken
from delegation.reviews import services as reviews
from delegation.reviews.services import REVIEWS
from delegation.stops.services import STOPS
from delegation.token_keys import keys

FORGOTTEN_BATCHES = 100
MAINTAIN = "delegation.maintain_keys"

work_on_stop = task_calling(STOPS.task, STOPS.run)
sweep_stops = task_calling("stops.sweep", STOPS.sweep)
work_on_review = task_calling(REVIEWS.task, REVIEWS.run)
sweep_reviews = task_calling("reviews.sweep", reviews.sweep)


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
