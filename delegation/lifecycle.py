"""Statuses and periods of token keys.

Verifiers cache the JWKS for `JWKS_MAX_AGE`: a key is published for longer than that before it signs, and
until its last token has expired.
"""

from datetime import timedelta

from django.db import models

JWKS_MAX_AGE = timedelta(minutes=10)
PUBLISHED_AHEAD = timedelta(minutes=15)
MAX_TTL = timedelta(days=1)
PUBLISHED_AFTER_RETIREMENT = MAX_TTL + timedelta(hours=1)
DESTROY_AFTER = timedelta(hours=1)
"""Longer than any request that read the active key just before it retired."""


class KeyStatus(models.TextChoices):
    PUBLISHED = "published"
    ACTIVE = "active"
    RETIRED = "retired"
    WITHDRAWN = "withdrawn"
