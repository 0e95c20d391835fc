"""Periodic work on token keys and on the rows of issued tokens."""

from typing import Any

from django.conf import settings

from auditlog.vocabulary import Actor
from compliance.core.clock import now
from compliance.core.tasks import task
from delegation.models import IssuedToken
from delegation.token_keys import keys

FORGOTTEN_BATCHES = 100
MAINTAIN = "delegation.maintain_keys"


@task(MAINTAIN)
def maintain_keys(**kwargs: Any) -> None:
    """Promote, publish and destroy token keys as they become due."""
    keys.maintain(lifetime=settings.TOKEN_KEY_LIFETIME, actor=Actor.system(MAINTAIN), now=now())


@task("delegation.forget_issued")
def forget_issued(**kwargs: Any) -> None:
    """Delete the rows of tokens that expired some time ago."""
    for _ in range(FORGOTTEN_BATCHES):
        if not IssuedToken.objects.delete_expired(now=now()):
            return
