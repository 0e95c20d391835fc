"""API keys as text: a prefix that names the environment, and a 256-bit secret stored only as a hash."""

import hashlib
import secrets
from functools import cache

from django.conf import settings

from compliance.core.environments import Environment


@cache
def prefix_of(environment: Environment) -> str:
    """Return `service_live_` or `service_test_`."""
    return f"{settings.SERVICE_NAME}_{environment.value}_"


def new_secret(environment: Environment) -> str:
    """Return a new key: the environment's prefix and 256 random bits."""
    return prefix_of(environment) + secrets.token_urlsafe(32)


def environment_of(key: str) -> Environment | None:
    """Return the environment that a key's prefix names; None without such a prefix."""
    return next((found for found in Environment if key.startswith(prefix_of(found))), None)


def digest(key: str) -> str:
    """Return the stored form: SHA-256 in hex. A slow hash adds nothing to 256 bits of entropy."""
    return hashlib.sha256(key.encode()).hexdigest()


def hint_of(key: str) -> str:
    """Return what is shown of a key later: its prefix and last four characters."""
    environment = environment_of(key)
    prefix = prefix_of(environment) if environment else ""
    return f"{prefix}…{key[-4:]}"
