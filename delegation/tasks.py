"""Periodic work on token keys."""

from typing import Any

from django.conf import settings

from auditlog.vocabulary import Actor
from compliance.core.clock import now
from compliance.core.tasks import task
from delegation.jose import keys

MAINTAIN = "delegation.maintain_keys"


@task(MAINTAIN)
def maintain_keys(**kwargs: Any) -> None:
    """Promote, publish and destroy token keys as they become due."""
    keys.maintain(lifetime=settings.TOKEN_KEY_LIFETIME, actor=Actor.system(MAINTAIN), now=now())
