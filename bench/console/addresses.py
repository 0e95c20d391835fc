"""Every address of the console that a person can click to: pages, filters, searches, orders, rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from django.contrib.admin.filters import ChoicesFieldListFilter, SimpleListFilter
from django.contrib.admin.views.main import ChangeList
from django.db.models import Model
from unfold.contrib.filters.admin import RangeDateTimeFilter, TextFilter

from compliance.tests.url_table import PAGES, Route, routes

# They end the session, or answer with a file or a part of a page.
SKIPPED = frozenset({"login", "logout", "jsi18n", "view_on_site", "auditlog_auditentry_export"})
WORDS = {"auditlog_auditentry": ("desk", "odd transfers", "reconciliation 77", "case 4711")}
NOTHING = "zz-nobody-is-called-so"
NO_ID = "0199f2a4-7c1e-7d3a-9b1c-2f6f0f7f3b00"
MOST_VALUES = 4
"""Of a filter, so many values are looked at."""
INBOX = (
    "", "band=high", "band=medium", "shown=mine", "shown=nobody", "shown=snoozed", "page=2", "page=20",
    "q=payments", "q=ledger-watcher-7", f"q={NOTHING}", "band=high&shown=nobody&q=orders", "tick=all",
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """One address: its route, what of it is looked at, and the path with its query."""

    route: str
    what: str
    url: str


def whole_pages() -> Iterator[Target]:
    """Pages that are of no row, but for lists."""
    for route in routes():
        if not route.is_of_a_row and not route.name.endswith("_changelist") and route.name not in SKIPPED:
            yield Target(route.name, "", _url(route))
    inbox = next(route for route in routes() if route.name == "inbox_openevent_changelist")
    for query in INBOX:
        yield Target(inbox.name, query, f"{inbox.url()}?{query}")


def lists() -> Iterator[Route]:
    for route in routes():
        if route.name.endswith("_changelist") and route.page != "inbox_openevent":
            yield route


def of_list(route: Route, found: ChangeList, row: Model | None) -> Iterator[Target]:
    """The list's addresses: plain, by page, each filter, each order and searches for what `row` says."""
    base, name = route.url(), route.page or ""
    queries: dict[str, str] = {"": ""}
    if found.result_count > found.list_per_page:
        queries["page 2"] = "p=2"
    if found.result_count > 40 * found.list_per_page:
        queries["page 40"] = "p=40"
    for spec in found.filter_specs:
        queries |= {f"filter {value}": value for value in islice(_filtered(spec), MOST_VALUES)}
    for at, column in enumerate(found.list_display):
        if found.get_ordering_field(column) and _is_sortable(found, column):
            queries[f"order -{column}"] = f"o=-{at}"
    if found.search_fields:
        terms = (*WORDS.get(name, ()), *_said(found, row), NOTHING, NO_ID)
        queries |= {f"search {term}": urlencode({"q": term}) for term in terms}
    if found.date_hierarchy:
        today = datetime.now(tz=UTC).date()
        queries["month"] = urlencode(
            {f"{found.date_hierarchy}__year": today.year, f"{found.date_hierarchy}__month": today.month}
        )
    for what, query in queries.items():
        yield Target(route.name, what, f"{base}?{query}" if query else base)


def of_row(page: str, row: Model) -> Iterator[Target]:
    """The pages of a row, and the lists that its page links to."""
    for route in routes():
        if route.page == page and route.is_of_a_row:
            yield Target(route.name, "", route.url(row.pk))
    named = {route.name: route for route in routes()}
    for link in getattr(PAGES.get(page), "related_links", ()):
        url = named[f"{link.model}_changelist"].url()
        yield Target(
            f"{link.model}_changelist", f"of {page}", f"{url}?{urlencode({link.parameter: link.value(row)})}"
        )


def _url(route: Route) -> str:
    query = "?app_label=tenancy&model_name=membership&field_name=user&term=of"
    return route.url() + (query if route.name == "autocomplete" else "")


def _is_sortable(found: ChangeList, column: Any) -> bool:
    return found.sortable_by is None or column in found.sortable_by


def _filtered(spec: Any) -> Iterator[str]:
    """Query strings of a filter's values."""
    if isinstance(spec, TextFilter):
        yield from (
            urlencode({str(spec.parameter_name): text}) for text in ("officer", "system:sweeper", NOTHING)
        )
    elif isinstance(spec, SimpleListFilter):
        yield from (urlencode({str(spec.parameter_name): value}) for value, _ in spec.lookup_choices)
    elif isinstance(spec, RangeDateTimeFilter):
        today = datetime.now(tz=UTC).date()
        for start, end in ((today - timedelta(7), today), (today - timedelta(60), today - timedelta(53))):
            name = spec.parameter_name
            yield urlencode({f"{name}_from_0": start, f"{name}_from_1": "00:00:00", f"{name}_to_0": end,
                             f"{name}_to_1": "00:00:00"})  # fmt: skip
    elif isinstance(spec, ChoicesFieldListFilter):
        yield from (urlencode({spec.lookup_kwarg: value}) for value, _ in spec.field.flatchoices)
    else:
        yield from (urlencode({spec.lookup_kwarg: value}) for value in ("1", "0"))


def _said(found: ChangeList, row: Model | None) -> list[str]:
    """What the row has in the fields that the list searches: whole, and the beginning; and its ID."""
    terms = []
    for path in found.search_fields if row is not None else ():
        value: Any = row
        for part in path.split("__"):
            value = getattr(value, part, None) if part not in ("exact", "startswith", "icontains") else value
        if isinstance(value, str) and value:
            terms += [value, value[:6]]
    return [*dict.fromkeys(terms), *([str(row.pk)] if row is not None else [])]
