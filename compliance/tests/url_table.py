"""The console's routes, read from its URL patterns, so that tests over all of them cover each new one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.urls import URLPattern, URLResolver, reverse

from compliance.console.addresses import within
from compliance.core.environments import Environment

ROW_PARAMETERS = frozenset({"object_id", "id"})
# What stands for each other parameter of a route.
PARAMETERS = {
    "app_label": "agents",
    "content_type_id": "1",
    "draft_id": "01a20000-0000-7000-8000-000000000000",
    "name": "csv",
    "token": "no-such-token",
}


@dataclass(frozen=True)
class Route:
    """A named route of the console; `page` is the `app_model` of its rows, if it shows any."""

    name: str
    parameters: tuple[str, ...]
    page: str | None

    @property
    def is_of_a_row(self) -> bool:
        return not ROW_PARAMETERS.isdisjoint(self.parameters)

    def url(self, key: object = None, *, environment: Environment = Environment.LIVE) -> str:
        """Return its address in `environment`; `key` is the primary key of the row that it shows."""
        filled = {name: str(key) if name in ROW_PARAMETERS else PARAMETERS[name] for name in self.parameters}
        with within(environment):
            return reverse(f"admin:{self.name}", kwargs=filled)


def page_name(model: type[Model]) -> str:
    return f"{model._meta.app_label}_{model._meta.model_name}"


PAGES = {page_name(model): page for model, page in admin.site._registry.items()}


def routes() -> list[Route]:
    """Return the named routes of the admin site, in the order of their patterns."""
    found = {}
    for pattern in _patterns(admin.site.urls[0]):
        if pattern.name:
            parameters = tuple(pattern.pattern.regex.groupindex)
            found[pattern.name] = Route(pattern.name, parameters, _page_of(pattern.name))
    return list(found.values())


def _patterns(entries: list[Any]) -> Iterator[URLPattern]:
    for entry in entries:
        if isinstance(entry, URLResolver):
            yield from _patterns(entry.url_patterns)
        else:
            yield entry


def _page_of(name: str) -> str | None:
    """Return the longest `app_model` that the route's name begins with."""
    matching = [page for page in PAGES if name.startswith(f"{page}_")]
    return max(matching, key=len, default=None)
