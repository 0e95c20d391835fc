"""What the console never does: run what tenants wrote, show a secret, embed outsiders."""

from dataclasses import dataclass
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client
from django.urls import reverse

from agents.tests.factories import make_agent
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.console import WEBHOOK_SECRET, console_of, make_member, make_operator, populate
from compliance.tests.url_table import routes
from tenancy import services
from tenancy.models import ApiKey, Role, Tenant
from tenancy.tests.factories import ACTOR, make_tenant

HOSTILE = "evaluateme<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{7*7}}${8*8}\u202eexe"


@pytest.fixture
def acme() -> Tenant:
    return make_tenant(HOSTILE)


def pages_about(client: Client, rows: dict[str, Any]) -> dict[str, str]:
    """The HTML of the first page, of every list and of every row's page."""
    addresses = [reverse("admin:index")]
    for page, row in rows.items():
        addresses += [reverse(f"admin:{page}_changelist"), reverse(f"admin:{page}_change", args=[row.pk])]
    return {address: client.get(address, follow=True).content.decode() for address in addresses}


@dataclass(frozen=True)
class Seen:
    """What an operator sees of a tenant with a key, whose rows hold the word `evaluateme`."""

    tenant: Tenant
    rows: dict[str, Any]
    secret: str
    pages: dict[str, str]


@pytest.fixture(scope="module")
def seen(world_transaction: None) -> Seen:
    tenant = make_tenant(HOSTILE)
    rows = populate(tenant, Environment.LIVE, HOSTILE)
    secret = services.create_key(tenant=tenant, name="kept", actor=ACTOR, now=now()).secret
    return Seen(tenant, rows, secret, pages_about(console_of(make_operator("looker")), rows))


def test_what_tenants_write_is_escaped_everywhere(seen: Seen) -> None:
    agent = make_agent(
        seen.tenant,
        name=HOSTILE,
        model=HOSTILE,
        version=HOSTILE,
        model_hash=HOSTILE,
        description=HOSTILE,
        metadata={HOSTILE: [HOSTILE], "permitted_actions": [HOSTILE]},
        financial_scope={"permitted_venues": [HOSTILE]},
    )
    client = console_of(make_operator())

    pages = seen.pages | pages_about(client, {"agents_agent": agent})
    pages["suspend"] = client.get(reverse("admin:agents_agent_suspend", args=[agent.pk])).content.decode()
    pages["audit"] = client.get(reverse("admin:auditlog_auditentry_changelist")).content.decode()

    for address, html in pages.items():
        assert "<script>alert" not in html, address
        assert "<img src=x" not in html, address
        assert "\"'><img" not in html, address
    assert "&lt;script&gt;alert(1)" in pages["audit"]
    assert "\\u202eexe" in pages["audit"]


def test_no_attribute_that_scripts_evaluate_holds_what_tenants_write(seen: Seen) -> None:
    """Unfold's Alpine.js and htmx run the text of x-… and hx-… attributes, escaped or not."""
    for address, html in seen.pages.items():
        for tag in html.split("<"):
            for attribute in tag.split(">")[0].split(" x-")[1:] + tag.split(">")[0].split(" hx-")[1:]:
                assert "evaluateme" not in attribute.split('" ')[0], address


@pytest.mark.parametrize("who", ["operator", "developer"])
def test_secrets_stand_in_no_page(seen: Seen, who: str) -> None:
    pages = seen.pages
    if who == "developer":
        pages = pages_about(console_of(make_member(seen.tenant, Role.DEVELOPER)), seen.rows)

    webhook = seen.rows["webhooks_webhook"]
    hidden = [
        seen.secret,
        WEBHOOK_SECRET,
        bytes(webhook.secret).decode(),
        *ApiKey.objects.values_list("digest", flat=True),
    ]
    for address, html in pages.items():
        assert not [text for text in hidden if text in html], address


# --- Headers -----------------------------------------------------------------------------------------


def test_console_pages_carry_a_policy_and_the_api_does_not() -> None:
    policy = Client().get("/admin/live/login/").headers["Content-Security-Policy"]

    assert "script-src 'self' 'unsafe-eval'" in policy
    assert "default-src 'none'" in policy
    assert "Content-Security-Policy" not in Client().get("/v1/agents").headers


def test_no_page_is_kept_by_a_browser_or_proxy() -> None:
    client = console_of(make_operator())
    pages = [route.url() for route in routes() if not route.is_of_a_row and route.name != "logout"]

    kept = [url for url in pages if "no-store" not in client.get(url).headers["Cache-Control"]]

    assert kept == []


@pytest.mark.parametrize("address", ["/admin/live/inbox/openevent/", "/admin/live/agents/agent/1/suspend/"])
def test_form_with_an_outdated_token_keeps_what_was_typed(address: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_operator(), backend="django.contrib.auth.backends.ModelBackend")
    form = {"csrfmiddlewaretoken": "x" * 64, "note": "Seen <b>before</b>", "password": "hunter two"}

    answer = client.post(address, form)

    html = answer.content.decode()
    assert answer.status_code == 403
    assert "Seen &lt;b&gt;before&lt;/b&gt;" in html
    assert f'href="{address}"' in html
    assert "hunter two" not in html
    assert "x" * 64 not in html


@pytest.mark.parametrize(("short", "meant"), [("/", "/admin/"), ("/admin", "/admin/"), ("/docs", "/v1/docs")])
def test_short_addresses_lead_somewhere(short: str, meant: str) -> None:
    assert Client().get(short).headers["Location"] == meant
    assert Client().post(short).status_code == 404


@pytest.mark.parametrize(
    ("address", "status"), [("/admin/live/auth/user/", 403), ("/admin/live/no/such/page/", 404)]
)
def test_errors_are_pages_for_people(acme: Tenant, address: str, status: int) -> None:
    answer = console_of(make_member(acme, Role.AUDITOR)).get(address)

    assert answer.status_code == status
    assert answer.headers["Content-Type"].startswith("text/html")
    assert "Content-Security-Policy" in answer.headers
    assert "To the overview" in answer.content.decode()


def test_a_dead_database_is_a_page_too(monkeypatch: pytest.MonkeyPatch) -> None:
    user = make_operator()
    client = console_of(user)

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise OperationalError("connection refused")

    monkeypatch.setattr("agents.admin.AgentAdmin.get_queryset", fail)
    answer = client.get(reverse("admin:agents_agent_changelist"))

    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "1"
    assert "Unavailable for the moment" in answer.content.decode()


def test_no_page_holds_a_script_that_the_policy_would_refuse(seen: Seen) -> None:
    for address, html in seen.pages.items():
        inline = [tag for tag in html.split("<script")[1:] if "src=" not in tag.split(">")[0]]
        assert inline == [], address
        assert " onclick=" not in html, address


@pytest.mark.parametrize("value", ["%00", "a%00b"])
def test_nul_bytes_in_filters_are_refused(acme: Tenant, value: str) -> None:
    client = console_of(make_operator())

    for page in ("agents_agent", "auditlog_auditentry"):
        for name in ("q", "description", "actor_id", "id"):
            answer = client.get(reverse(f"admin:{page}_changelist") + f"?{name}={value}")
            assert answer.status_code in (200, 302, 400), (page, name)
    assert client.get(f"/admin/live/agents/agent/{value}/change/").status_code == 302


def test_own_password_is_not_guessed_with_a_stolen_session(settings: Any) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "sign_in": 2}
    operator, wrong = make_operator(), {"oldpassword": "a guess", "login": "root", "password": "a guess"}
    operator.set_password("correct horse battery")
    operator.save()
    client = console_of(operator)

    answers = [client.post(reverse("admin:password_change"), wrong) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert int(answers[-1].headers["Retry-After"]) >= 1
    assert "Too many attempts to sign in" in answers[-1].content.decode()
    assert Client().get("/admin/live/login/").status_code == 200
    assert Client().post("/admin/live/login/", wrong, REMOTE_ADDR="192.0.2.1").status_code == 200
