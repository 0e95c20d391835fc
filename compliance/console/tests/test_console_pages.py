"""Every page of the console renders, for whom it should, with rows of its environment and tenant only."""

from typing import Any, NamedTuple

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from auditlog.models import AuditEntry
from compliance.console.admin import TenantScopedAdmin
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tests.console import console_of, join, make_member, make_operator, make_staff, populate
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_tenant

ROOMS = {
    *("agents", "auditlog", "certificates", "compliance", "delegation", "events", "gateway", "incidents"),
    *("ops", "people", "reports", "signals", "tenancy", "webhooks"),
}
BOTH = pytest.mark.parametrize("environment", list(Environment))
# `-m matrix` tests all others.
TESTED_ALWAYS = (Environment.LIVE, Role.OFFICER)
MATRIX = [
    pytest.param(one, role, marks=() if (one, role) == TESTED_ALWAYS else pytest.mark.matrix)
    for one in Environment
    for role in Role
]
OPERATORS = pytest.mark.parametrize(
    "environment", [Environment.TEST, pytest.param(Environment.LIVE, marks=pytest.mark.matrix)]
)


def name_of(model: Any) -> str:
    return f"{model._meta.app_label}_{model._meta.model_name}"


PAGES = sorted(name_of(model) for model in admin.site._registry)
# Pages that every member opens, with rows of their tenants; the rest is of the service, for operators.
TENANT_PAGES = sorted(
    name_of(model)
    for model, page in admin.site._registry.items()
    if isinstance(page, TenantScopedAdmin) and page.tenant_field and set(Role.values) <= page.view_roles
)
OPERATORS_PAGES = sorted(
    name_of(model)
    for model, page in admin.site._registry.items()
    if not (isinstance(page, TenantScopedAdmin) and set(Role.values) <= page.view_roles)
)


def list_of(client: Client, page: str, query: str = "") -> Any:
    return client.get(reverse(f"admin:{page}_changelist") + query)


def page_of(client: Client, page: str, row: Any) -> Any:
    return client.get(reverse(f"admin:{page}_change", args=[row.pk]))


Rows = dict[str, Any]


class World(NamedTuple):
    """Two tenants, and a row of every kind of each in each environment."""

    acme: Tenant
    mine: dict[Environment, Rows]
    rival: Tenant
    theirs: dict[Environment, Rows]


@pytest.fixture(scope="module")
def world(owned_world_transaction: None) -> World:
    acme, rival = make_tenant("Acme"), make_tenant("Rival")
    mine = {environment: populate(acme, environment, "mine") for environment in Environment}
    theirs = {environment: populate(rival, environment, "theirs") for environment in Environment}
    return World(acme, mine, rival, theirs)


@OPERATORS
def test_operator_opens_every_list_and_form(world: World, environment: Environment) -> None:
    make_member(world.acme, Role.OFFICER)
    client = console_of(make_operator(), environment)

    for page in PAGES:
        assert list_of(client, page).status_code == 200, page
        assert list_of(client, page, "?q=agent").status_code == 200, page
        assert client.get(reverse(f"admin:{page}_add")).status_code in (200, 403), page


def test_every_table_of_the_service_has_a_page() -> None:
    ours = [model for model in apps.get_models() if model.__module__.split(".")[0] in ROOMS]
    # Kept answers, what the service makes of events, spans and reviews, for its own use, the octets of
    # revocation lists, the signatures of agent cards, keys made in advance, and what the pages of the audit
    # log, its tree, deliveries, incidents and users show.
    derived = {
        "agent_keys_agentkey", "agents_blueprintrenewal", "agents_ownermail", "agents_renewedagent",
        "api_idempotencyrecord",
        "auditlog_leaf", "auditlog_logkey", "auditlog_pendingentry", "auditlog_signedhead",
        "auditlog_treetile", "auditlog_witnessstate",
        "certificates_pooledkey", "certificates_revocationlistpart",
        "certificates_signedcard", "certificates_wrappedagentkey", "certificates_wrappingkey",
        "delegation_issuedcredential", "events_pendingreview", "events_riskday", "events_riskwatermark",
        "events_scorerprogress", "events_scorersnapshot", "events_tenantbaseline", "events_tenantmarks",
        "figures_actionday", "figures_dayfigures", "gateway_gatewayviolation", "inbox_agentqueue",
        "incidents_timelineentry", "incidents_touchedagent", "incidents_touchedcertificate",
        "otlp_countedspan", "people_cacheentry", "people_externalidentity", "people_onetimelink",
        "people_person", "reports_notificationdraft", "reviews_accessreviewitem", "signals_feedposition",
        "signals_signal", "stops_stoppedagent", "streaming_streamposition", "webhooks_attempt",
        "webhooks_message", "wiring_schedulerlease",
    }  # fmt: skip

    assert {name_of(model) for model in ours if not admin.site.is_registered(model)} == derived


def test_what_is_the_services_own_is_not_a_tenants_page() -> None:
    kept = {"auth_user", "tenancy_membership", "delegation_tokenkey"}

    assert kept <= set(OPERATORS_PAGES)


@OPERATORS
def test_operator_opens_every_rows_page(world: World, environment: Environment) -> None:
    rows = dict(world.mine[environment])
    with environments.use(environment):
        rows["auditlog_auditentry"] = AuditEntry.objects.for_tenant(world.acme.id).first()
    client = console_of(make_operator(), environment)

    answers = {page: page_of(client, page, row).status_code for page, row in rows.items()}

    assert answers == dict.fromkeys(rows, 200)


@pytest.mark.parametrize(("environment", "role"), MATRIX)
def test_members_open_the_pages_of_their_tenant(world: World, environment: Environment, role: Role) -> None:
    rows = world.mine[environment]
    client = console_of(make_member(world.acme, role), environment)

    for page in TENANT_PAGES:
        assert list_of(client, page).status_code == 200, page
    for page in set(rows) & set(TENANT_PAGES):
        assert page_of(client, page, rows[page]).status_code == 200, page


@BOTH
def test_members_see_no_row_of_another_tenant(world: World, environment: Environment) -> None:
    mine, theirs = world.mine[environment], world.theirs[environment]
    client = console_of(make_member(world.acme, Role.OFFICER), environment)

    for page in TENANT_PAGES:
        html = list_of(client, page).content.decode()
        assert "theirs" not in html, page
        assert "Rival" not in html, page
        if page in mine:
            assert str(mine[page].pk) in html, page
            assert str(theirs[page].pk) not in html, page


def test_pop_ups_and_look_ups_find_no_foreign_row(world: World) -> None:
    client = console_of(make_member(world.acme, Role.OFFICER))
    look_up = {"app_label": "tenancy", "model_name": "membership", "field_name": "user", "term": ""}

    pop_up = list_of(client, "agents_agent", "?_popup=1&_to_field=id")

    assert "theirs" not in pop_up.content.decode()
    assert client.get(reverse("admin:autocomplete"), look_up).status_code == 403


def test_tenant_filter_names_only_the_users_tenants(world: World) -> None:
    third = make_tenant("Third")
    user = make_member(world.acme, Role.OFFICER)
    join(user, third, Role.AUDITOR)

    html = list_of(console_of(user), "agents_agent").content.decode()

    assert "Third" in html
    assert "Rival" not in html


def test_no_list_uses_djangos_filter_over_a_relation() -> None:
    found = [
        f"{name_of(model)}: {entry}"
        for model, page in admin.site._registry.items()
        if isinstance(page, TenantScopedAdmin)
        for entry in page.list_filter
        if isinstance(name := entry[0] if isinstance(entry, tuple) else entry, str)
        and model._meta.get_field(name).is_relation
    ]

    assert found == []


def test_staff_without_a_membership_see_nothing(world: World) -> None:
    client = console_of(make_staff())

    assert "belongs to no tenant" in client.get(reverse("admin:index")).content.decode()
    for page in PAGES:
        assert list_of(client, page).status_code == 403, page
    for page, row in world.mine[Environment.LIVE].items():
        assert page_of(client, page, row).status_code in (302, 403), page


def test_django_permissions_open_nothing(world: World) -> None:
    user = make_staff()
    user.user_permissions.set(Permission.objects.all())
    client = console_of(user)

    for page in PAGES:
        assert list_of(client, page).status_code == 403, page
        assert client.get(reverse(f"admin:{page}_add")).status_code == 403, page


@pytest.mark.parametrize("role", list(Role))
def test_pages_of_the_service_are_for_operators(world: World, role: Role) -> None:
    client = console_of(make_member(world.acme, role))

    for page in OPERATORS_PAGES:
        assert list_of(client, page).status_code == 403, page
