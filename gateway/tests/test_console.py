"""Routes of gateways in the console: what developers do, and that nobody else does it."""

from typing import Any

import pytest
from django.urls import reverse

from auditlog.models import AuditEntry
from compliance.tests.console import actor_id_of, console_of, make_member
from gateway.models import GatewayRoute
from gateway.tests.factories import make_route
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_tenant

NEW = {
    "name": "orders",
    "credentials": ["bearer", "dpop"],
    "action": "orders.read",
    "audience": "https://api.example",
    "highest_band": "medium",
    "root": "verified",
    "agents": "own",
    "nonce_required": True,
}
AS_TYPED = {**NEW, "nonce_required": "on"}


@pytest.fixture
def acme() -> Tenant:
    return make_tenant("Acme")


def fields_of(route: GatewayRoute) -> dict[str, Any]:
    return {name: getattr(route, name) for name in NEW}


def add(role: Role, member_of: Tenant, **fields: Any) -> Any:
    client = console_of(make_member(member_of, role))
    form = {"tenant": member_of.pk, **AS_TYPED, **fields}
    return client.post(reverse("admin:gateway_gatewayroute_add"), form, follow=True)


def change(role: Role, route: GatewayRoute, **fields: Any) -> Any:
    client = console_of(make_member(route.tenant, role))
    url = reverse("admin:gateway_gatewayroute_change", args=[route.pk])
    return client.post(url, {**AS_TYPED, **fields}, follow=True)


def entries(tenant: Tenant, action: str) -> list[AuditEntry]:
    return list(AuditEntry.objects.for_tenant(tenant.id).of_type(action))


def test_developer_adds_a_route(acme: Tenant) -> None:
    add(Role.DEVELOPER, acme)

    assert fields_of(GatewayRoute.objects.get(tenant=acme)) == NEW
    (entry,) = entries(acme, "gateway_route.created")
    assert entry.actor_id == actor_id_of("developer")


def test_empty_action_and_audience_are_none(acme: Tenant) -> None:
    add(Role.DEVELOPER, acme, action="", audience="")

    route = GatewayRoute.objects.get(tenant=acme)
    assert (route.action, route.audience) == (None, None)


def test_developer_edits_a_route_and_nothing_beside_it(acme: Tenant) -> None:
    route = make_route(acme)

    change(Role.DEVELOPER, route, tenant=make_tenant("Rival").pk, created_at="2020-01-01")

    changed = GatewayRoute.objects.get(pk=route.pk)
    assert fields_of(changed) == NEW
    assert (changed.tenant_id, changed.created_at) == (route.tenant_id, route.created_at)
    (entry,) = entries(acme, "gateway_route.updated")
    assert (entry.metadata or {})["changes"]["action"] == {"before": None, "after": "orders.read"}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"name": "Orders!"}, "lowercase letters"),
        ({"credentials": ["serial", "dpop"]}, "no verified root"),
        ({"audience": "api\u202e"}, "hidden characters"),
    ],
)
def test_rules_of_routes_hold_in_the_console(acme: Tenant, fields: dict[str, Any], told: str) -> None:
    page = add(Role.DEVELOPER, acme, **fields)

    assert told in page.content.decode()
    assert not GatewayRoute.objects.filter(tenant=acme).exists()


def test_a_name_is_taken_once(acme: Tenant) -> None:
    make_route(acme, name="orders")
    other = make_route(acme, name="other")

    added = add(Role.DEVELOPER, acme)
    renamed = console_of(make_member(acme, Role.DEVELOPER, "second")).post(
        reverse("admin:gateway_gatewayroute_change", args=[other.pk]), AS_TYPED, follow=True
    )

    assert "already exists" in added.content.decode()
    assert "has a gateway route of this name" in renamed.content.decode()
    assert sorted(GatewayRoute.objects.values_list("name", flat=True)) == ["orders", "other"]


@pytest.mark.parametrize("role", [Role.OFFICER, Role.AUDITOR])
def test_only_developers_add_edit_and_remove(acme: Tenant, role: Role) -> None:
    route = make_route(acme)
    client = console_of(make_member(acme, role))

    answers = [
        client.post(reverse("admin:gateway_gatewayroute_add"), {"tenant": acme.pk, **AS_TYPED}),
        client.post(reverse("admin:gateway_gatewayroute_change", args=[route.pk]), AS_TYPED),
        client.post(reverse("admin:gateway_gatewayroute_remove", args=[route.pk])),
    ]

    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert [fields_of(one) for one in GatewayRoute.objects.filter(tenant=acme)] == [fields_of(route)]


def test_developer_removes_a_route(acme: Tenant) -> None:
    route = make_route(acme)

    client = console_of(make_member(acme, Role.DEVELOPER))
    client.post(reverse("admin:gateway_gatewayroute_remove", args=[route.pk]))

    assert not GatewayRoute.objects.filter(pk=route.pk).exists()
    (entry,) = entries(acme, "gateway_route.deleted")
    assert entry.actor_id == actor_id_of("developer")
