"""Periodic tasks of the API."""

from typing import Any

from compliance.api.models import IdempotencyRecord
from compliance.core.clock import now
from compliance.core.tasks import task


@task("compliance.api.forget_answers")
def forget_answers(**kwargs: Any) -> None:
    """Delete the kept answers of idempotent requests past their 24 hours: some hold a secret shown once."""
    IdempotencyRecord.objects.expired(now()).delete()
