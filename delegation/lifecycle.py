"""The life of a token key: published, then active, then retired; withdrawn when it is compromised.

Verifiers hold the JWKS for `JWKS_MAX_AGE`. A key is published for longer than that before it signs, so
none of them meets a token whose key it has not seen, and stays published until the last token that it
signed has expired.
"""

from datetime import timedelta

from django.db import models

JWKS_MAX_AGE = timedelta(minutes=10)
PUBLISHED_AHEAD = timedelta(minutes=15)
MAX_TTL = timedelta(days=1)
PUBLISHED_AFTER_RETIREMENT = MAX_TTL + timedelta(hours=1)
DESTROY_AFTER = timedelta(hours=1)
"""A request that read the active key just before it retired has long been answered by then."""


class KeyStatus(models.TextChoices):
    """A token key's state."""

    PUBLISHED = "published"
    ACTIVE = "active"
    RETIRED = "retired"
    WITHDRAWN = "withdrawn"
