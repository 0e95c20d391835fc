"""API keys as strings: their prefix names the environment, their 256-bit secret is kept only as a hash."""

import hashlib
import secrets
from functools import cache

from django.conf import settings

from compliance.environments import Environment


@cache
def prefix_of(environment: Environment) -> str:
    """`service_live_` or `service_test_`."""
    return f"{settings.SERVICE_NAME}_{environment.value}_"


@cache
def _prefixes() -> tuple[tuple[str, Environment], ...]:
    return tuple((prefix_of(environment), environment) for environment in Environment)


def new_secret(environment: Environment) -> str:
    """A fresh key; 256 random bits behind the environment's prefix."""
    return prefix_of(environment) + secrets.token_urlsafe(32)


def environment_of(key: str) -> Environment | None:
    """The environment a key's prefix names; None when it has neither prefix."""
    for prefix, environment in _prefixes():
        if key.startswith(prefix):
            return environment
    return None


def digest(key: str) -> str:
    """What is stored: SHA-256 in hex. A slow hash adds nothing to 256 bits of entropy."""
    return hashlib.sha256(key.encode()).hexdigest()


def hint_of(key: str) -> str:
    """What people may see of a key later: its prefix and last four characters."""
    environment = environment_of(key)
    prefix = prefix_of(environment) if environment else ""
    return f"{prefix}…{key[-4:]}"
