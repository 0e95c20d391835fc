"""The addresses of the console: each page exists once in each environment, under a prefix of its own.

`/admin/live/…` and `/admin/test/…` are the same routes (`CONSOLE_URLCONF`). Inside `within()`,
`reverse` and `{% url %}` give the addresses of its environment; elsewhere they give the live ones.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.http import HttpRequest
from django.urls import (
    Resolver404,
    ResolverMatch,
    get_script_prefix,
    get_urlconf,
    resolve,
    reverse,
    set_script_prefix,
    set_urlconf,
)

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


def page_at(address: str) -> ResolverMatch | None:
    """Return the page at `address`, written without its prefix; None if there is none."""
    try:
        match = resolve(f"/{address}", URLCONF)
    except Resolver404:
        return None
    # The admin's own routes end in one that matches everything, and has no name.
    return match if match.url_name else None


def counterparts(request: HttpRequest) -> dict[Environment, str]:
    """Return the address of the request's page in each environment.

    A row exists in one environment only: its page's counterpart is the list.
    """
    match, page = request.resolver_match, "admin:index"
    if match is not None and match.url_name and not match.kwargs:
        page = match.view_name
    elif match is not None and (of_row := getattr(match.func, "model_admin", None)):
        page = f"admin:{of_row.opts.app_label}_{of_row.opts.model_name}_changelist"
    found = {}
    for environment in Environment:
        with within(environment):
            found[environment] = reverse(page)
    return found
