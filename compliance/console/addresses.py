"""The addresses of the console: each page exists once in each environment, under a prefix of its own.

`/admin/live/…` and `/admin/test/…` are the same routes (`CONSOLE_URLCONF`). Inside `within()`,
`reverse` and `{% url %}` give the addresses of its environment; elsewhere they give the live ones.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.urls import get_script_prefix, get_urlconf, set_script_prefix, set_urlconf

from compliance.core.environments import Environment

CONSOLE_PREFIX = "/admin/"
URLCONF: str = settings.CONSOLE_URLCONF
SIGN_IN = "login/"


def prefix_of(environment: Environment) -> str:
    """Return what the addresses of `environment` begin with."""
    return f"{CONSOLE_PREFIX}{environment.value}/"


def environment_of_path(path: str) -> Environment | None:
    """Return the environment that a request's path names; None if it names none."""
    return next((found for found in Environment if path.startswith(prefix_of(found))), None)


@contextmanager
def within(environment: Environment) -> Iterator[None]:
    """Make `reverse` give the addresses of `environment` inside the block."""
    urlconf, prefix = get_urlconf(), get_script_prefix()
    set_urlconf(URLCONF)
    set_script_prefix(prefix_of(environment))
    try:
        yield
    finally:
        set_urlconf(urlconf)
        set_script_prefix(prefix)
