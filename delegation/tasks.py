"""What delegation does by the clock."""

from typing import Any

from django.conf import settings

from auditlog.vocabulary import Actor
from compliance.clock import now
from compliance.tasks import task
from delegation import keys

ACTOR = Actor.system("delegation.maintain_keys")


@task("delegation.maintain_keys")
def maintain_keys(**kwargs: Any) -> None:
    """Put the next token key to work, publish one when it is time, destroy those that have ended."""
    keys.maintain(lifetime=settings.TOKEN_KEY_LIFETIME, actor=ACTOR, now=now())
