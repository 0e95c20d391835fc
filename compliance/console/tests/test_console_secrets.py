"""A secret is shown once: reloading its page neither repeats the action nor shows it again."""

from typing import Any

import pytest
from django.urls import reverse
from pytest_django.fixtures import Settings

from compliance.console.addresses import prefix_of
from compliance.console.secrets import KEPT_SECONDS
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.stores import redis
from compliance.tenancy.models import ApiKey, Tenant
from compliance.tenancy.tests.factories import make_tenant
from compliance.tests.console import ConsoleBrowser, address_in, console_of, make_operator
from compliance.tests.redis_servers import NOWHERE, redis_at

BOTH = pytest.mark.parametrize("environment", list(Environment))


@pytest.fixture
def acme() -> Tenant:
    return make_tenant("Acme")


def make_key(client: ConsoleBrowser, acme: Tenant) -> Any:
    form = {"tenant": acme.id, "name": "ci", "scopes": ["agents:read"]}
    return client.post(reverse("admin:tenancy_apikey_add"), form)


@BOTH
def test_reloading_the_page_changes_nothing_and_shows_nothing(acme: Tenant, environment: Environment) -> None:
    client = console_of(make_operator(), environment)

    made = make_key(client, acme)
    first = client.get(made.headers["Location"])
    again = client.get(made.headers["Location"])

    secret = first.context["secret"]
    with environments.use(environment):
        row = ApiKey.objects.get(name="ci")
    assert (made.status_code, first.status_code, again.status_code) == (302, 200, 410)
    assert made.headers["Location"].startswith(f"{prefix_of(environment)}secrets/")
    assert secret in first.content.decode()
    assert secret not in again.content.decode()
    assert address_in(environment, "tenancy_apikey_change", row.pk) in again.content.decode()
    for answer in (first, again):
        assert "no-store" in answer.headers["Cache-Control"]


def test_secret_waits_encrypted_for_minutes(acme: Tenant) -> None:
    operator = make_operator()
    client = console_of(operator)

    address = make_key(client, acme).headers["Location"]

    kept = redis.key("secret-page", operator.pk, address.split("/")[-2])
    stored = str(redis.client().hgetall(kept))
    remaining = redis.client().ttl(kept)
    session = dict(client.session.items())
    secret = client.get(address).context["secret"]
    assert 0 < remaining <= KEPT_SECONDS
    assert secret not in stored
    assert secret not in address
    assert secret not in str(session)


def test_nobody_else_sees_or_uses_up_the_secret(acme: Tenant) -> None:
    client = console_of(make_operator())
    address = make_key(client, acme).headers["Location"]

    other = console_of(make_operator("second")).get(address)
    elsewhere = client.get(address.replace(prefix_of(Environment.LIVE), prefix_of(Environment.TEST)))
    stranger = ConsoleBrowser(Environment.LIVE).get(address)

    assert (other.status_code, elsewhere.status_code, stranger.status_code) == (410, 410, 302)
    assert client.get(address).context["secret"]


@pytest.mark.parametrize("ticket", ["made-up", "%00", "a" * 3_000, "…"])
def test_made_up_address_shows_no_secret(ticket: str) -> None:
    answer = console_of(make_operator()).get(f"{prefix_of(Environment.LIVE)}secrets/{ticket}/")

    assert answer.status_code == 410
    assert "Shown already" in answer.content.decode()


def test_asking_for_headers_does_not_use_up_the_secret(acme: Tenant) -> None:
    client = console_of(make_operator())
    address = make_key(client, acme).headers["Location"]

    assert client.head(address).status_code == 405
    assert client.get(address).context["secret"]


def test_without_redis_the_form_answers_with_the_secret(acme: Tenant, settings: Settings) -> None:
    client = console_of(make_operator())

    with redis_at(NOWHERE, settings):
        page = make_key(client, acme)

    assert page.status_code == 200
    assert page.context["secret"] in page.content.decode()
