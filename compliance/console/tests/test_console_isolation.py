"""No page of the console shows or changes what belongs to another tenant or environment, for no role.

The pages come from the URL table. A foreign row is answered exactly like one that does not exist, on GET and
on POST; no answer names it; and nothing of it changes.
"""

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from uuid import uuid4

import pytest
from django import forms
from django.test import Client

from auditlog.models import AuditEntry
from compliance.console.actions import ConfirmedAction
from compliance.console.admin import TenantScopedAdmin
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tests.console import console_of, make_member, make_operator, make_staff, populate
from compliance.tests.databases import rolled_back_worlds
from compliance.tests.url_table import PAGES, Route, routes
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_tenant

ROUTES = routes()
# They end or change the session that asks.
OF_THE_SESSION = {
    *("login", "logout", "password_change"),
    *("account_login", "account_logout", "account_change_password"),
}
MINE, THEIRS, ELSEWHERE = "minerow", "theirsrow", "elsewhererow"
OPERATOR, NOBODY, STRANGER = "operator", "nobody", "stranger"


class World:
    """Rows of two tenants in one environment, and of the first in the other environment."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.other = Environment.TEST if environment is Environment.LIVE else Environment.LIVE
        self.acme, self.rival = make_tenant(f"Acme {MINE}"), make_tenant(f"Rival {THEIRS}")
        self.mine = populate(self.acme, environment, MINE)
        self.theirs = populate(self.rival, environment, THEIRS)
        self.elsewhere = populate(self.acme, self.other, ELSEWHERE)
        # The tenant's own row is mirrored: it exists in both.
        del self.elsewhere["tenancy_tenant"]

    def client_of(self, who: str) -> Client:
        if who == STRANGER:
            return Client()
        if who == OPERATOR:
            return console_of(make_operator(), self.environment)
        user = make_staff(NOBODY) if who == NOBODY else make_member(self.acme, Role(who))
        return console_of(user, self.environment)

    def foreign_rows(self, who: str) -> dict[str, list[Any]]:
        """Return the rows that do not exist for the person, by page."""
        found: dict[str, list[Any]] = {}
        for page, row in self.elsewhere.items():
            found.setdefault(page, []).append(row)
        for page, row in self.theirs.items() if who != OPERATOR else ():
            if is_of_tenants(page):
                found.setdefault(page, []).append(row)
        return found

    def foreign_words(self, who: str) -> set[str]:
        """Return what no answer to the person may say."""
        names = {ELSEWHERE} if who == OPERATOR else {ELSEWHERE, THEIRS, str(self.rival.id)}
        # A short key, of a counter, also stands for other things.
        keys = {str(row.pk) for rows in self.foreign_rows(who).values() for row in rows}
        return names | {key for key in keys if len(key) > 8}

    def state(self) -> list[Any]:
        """Return all that foreign rows hold, and how much the audit log says of their tenants."""
        return [
            *self._state_of(self.environment, self.theirs, self.rival),
            *self._state_of(self.other, self.elsewhere, self.acme),
        ]

    def own_state(self) -> list[Any]:
        return self._state_of(self.environment, self.mine, self.acme)

    def _state_of(self, environment: Environment, rows: dict[str, Any], tenant: Tenant) -> list[Any]:
        with environments.use(environment):
            held = [type(row)._default_manager.filter(pk=row.pk).values().first() for row in rows.values()]
            return [*held, AuditEntry.objects.for_tenant(tenant.id).count()]


def is_of_tenants(page: str) -> bool:
    admin = PAGES[page]
    return isinstance(admin, TenantScopedAdmin) and admin.tenant_field is not None


class FieldNames(HTMLParser):
    """The names of a page's form fields."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"input", "select", "textarea", "button"} and (name := dict(attrs).get("name")):
            self.found.add(name)


def filled(form: type[forms.Form]) -> dict[str, Any]:
    """Return data that the form of an action accepts."""
    found: dict[str, Any] = {}
    for name, field in form().fields.items():
        choices = [value for value, _ in getattr(field, "choices", ()) if value != ""]
        number = 1 if isinstance(field, forms.IntegerField) else "of no concern"
        found[name] = choices[0] if choices else number
    return found


def action_of(route: Route) -> ConfirmedAction | None:
    actions = getattr(PAGES.get(route.page or ""), "confirmed_actions", ())
    return next((found for found in actions if route.name == f"{route.page}_{found.name}"), None)


def answer_of(client: Client, method: str, url: str, data: Any = None) -> tuple[int, str, str]:
    """Return status, target and body, and drop the notice for the next page, which may repeat the request."""
    answer: Any = client.generic(method, url) if method == "GET" else client.post(url, data or {})
    client.cookies.pop("messages", None)
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return answer.status_code, answer.headers.get("Location", ""), body.decode("utf-8", "replace")


def whole_pages(world: World, client: Client, who: str) -> Iterator[str]:
    """Open each page that is of no row, then send each a form that names foreign rows."""
    words = world.foreign_words(who)
    foreign = {page: str(rows[-1].pk) for page, rows in world.foreign_rows(who).items()}
    urls = {
        route.url(environment=world.environment): foreign.get(route.page or "", foreign["agents_agent"])
        for route in ROUTES
        if not route.is_of_a_row and route.name not in OF_THE_SESSION
    }
    fields = {}
    for url in urls:
        _, _, body = answer_of(client, "GET", url)
        fields[url] = FieldNames(body).found
        yield from (f"GET {url} says {word}" for word in words if word in body)
    # An operator may well give a new row the name that is sent here.
    unsent = words - set(urls.values())
    for url, key in urls.items():
        sent = dict.fromkeys(fields[url], key) | {"_selected_action": key, "id": key}
        _, target, body = answer_of(client, "POST", url, sent)
        yield from (f"POST {url} says {word}" for word in unsent if word in target + body)


def row_pages(world: World, client: Client, who: str) -> Iterator[str]:
    """Open and send each page of a row: of a missing one, of foreign ones, and of the person's own."""
    words, foreign = world.foreign_words(who), world.foreign_rows(who)
    for route in ROUTES:
        if not route.is_of_a_row or route.page is None:
            continue
        action = action_of(route)
        data = filled(action.form_class) if action else {"post": "yes"}
        for method in ("GET", "POST"):
            missing = str(uuid4())
            expected = answer_of(client, method, route.url(missing, environment=world.environment), data)
            for row in foreign.get(route.page, ()):
                key = str(row.pk)
                found = answer_of(client, method, route.url(key, environment=world.environment), data)
                if tuple(str(part).replace(key, missing) for part in found) != tuple(map(str, expected)):
                    yield f"{method} {route.name}: {found[:2]} for a foreign row, {expected[:2]} for none"
        if route.page in world.mine:
            url = route.url(world.mine[route.page].pk, environment=world.environment)
            _, target, body = answer_of(client, "GET", url)
            yield from (f"GET {url} says {word}" for word in words if word in target + body)


@pytest.fixture(scope="module", params=list(Environment), ids=str)
def world(request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    with rolled_back_worlds(django_db_blocker):
        yield World(request.param)


@pytest.mark.matrix
@pytest.mark.parametrize("who", [*Role.values, OPERATOR, NOBODY, STRANGER])
def test_nothing_foreign_is_shown_or_changed(world: World, who: str, settings: Any) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "unauthenticated": 100_000}
    client = world.client_of(who)
    before = world.state()

    leaks = [*whole_pages(world, client, who), *row_pages(world, client, who)]

    assert leaks == []
    assert world.state() == before


@pytest.mark.parametrize(
    "who",
    [
        Role.AUDITOR,
        *(pytest.param(who, marks=pytest.mark.matrix) for who in (Role.OFFICER, Role.DEVELOPER, NOBODY)),
        STRANGER,
    ],
)
@pytest.mark.parametrize("world", [Environment.LIVE], indirect=True)
def test_actions_are_refused_to_other_roles(world: World, who: str) -> None:
    client = world.client_of(who)
    before = world.own_state()

    for route in ROUTES:
        action = action_of(route)
        if action is None or route.page not in world.mine or who in action.roles:
            continue
        url = route.url(world.mine[route.page].pk)
        for method in ("GET", "POST"):
            status, _, _ = answer_of(client, method, url, filled(action.form_class))
            assert status in {302, 403}, (method, url)

    assert world.own_state() == before
