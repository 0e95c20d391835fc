"""The console's routes, read from its URL patterns, so that tests over all of them cover each new one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from compliance.console.addresses import CONSOLE_PREFIX, URLCONF, within
from compliance.core.environments import Environment

ROW_PARAMETERS = frozenset({"object_id", "id"})
# What stands for each other parameter of a route.
PARAMETERS = {"app_label": "agents", "content_type_id": "1", "name": "csv", "pk": "1"}
# For a ticket, a token or an ID within a row: it opens nothing.
UNKNOWN = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True)
class Route:
    """A named route of the console; `page` is the `app_model` of its rows, if it shows any."""

    name: str
    parameters: tuple[str, ...]
    page: str | None
    namespace: str = ""

    @property
    def is_of_a_row(self) -> bool:
        return not ROW_PARAMETERS.isdisjoint(self.parameters)

    def url(self, key: object = None, *, environment: Environment = Environment.LIVE) -> str:
        """Return its address in `environment`; `key` is the primary key of the row that it shows."""
        filled = {
            name: str(key) if name in ROW_PARAMETERS else PARAMETERS.get(name, UNKNOWN)
            for name in self.parameters
        }
        with within(environment):
            return reverse(f"{self.namespace}{self.name}", kwargs=filled)


def page_name(model: type[Model]) -> str:
    return f"{model._meta.app_label}_{model._meta.model_name}"


# Loads the pages: the conftest of a folder that the command line names comes before pytest_collection.
_PATTERNS = get_resolver(URLCONF).url_patterns
PAGES = {page_name(model): page for model, page in admin.site._registry.items()}


def routes() -> list[Route]:
    """Return the named routes of the console, in the order of their patterns."""
    found = {}
    for namespace, before, pattern in _patterns(_PATTERNS):
        if pattern.name:
            parameters = (*before, *pattern.pattern.regex.groupindex)
            found[pattern.name] = Route(pattern.name, parameters, _page_of(pattern.name), namespace)
    return list(found.values())


def api_routes(patterns: list[Any] | None = None, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each route outside of the console, and its view."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        route = f"{prefix}{pattern.pattern}"
        if isinstance(pattern, URLPattern):
            yield route, pattern.callback
        elif not route.startswith(CONSOLE_PREFIX[1:]):
            yield from api_routes(pattern.url_patterns, route)


def methods_of(view: Any) -> list[str]:
    """Return the methods that a view takes, in lower case."""
    return list(getattr(view, "actions", None) or ["get"])


def _patterns(
    entries: list[Any], namespace: str = "", parameters: tuple[str, ...] = ()
) -> Iterator[tuple[str, tuple[str, ...], URLPattern]]:
    for entry in entries:
        if isinstance(entry, URLResolver):
            within_it = f"{namespace}{entry.namespace}:" if entry.namespace else namespace
            yield from _patterns(
                entry.url_patterns, within_it, (*parameters, *entry.pattern.regex.groupindex)
            )
        else:
            yield namespace, parameters, entry


def _page_of(name: str) -> str | None:
    """Return the longest `app_model` that the route's name begins with."""
    matching = [page for page in PAGES if name.startswith(f"{page}_")]
    return max(matching, key=len, default=None)
