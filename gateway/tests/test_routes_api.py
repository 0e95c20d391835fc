"""`/v1/gateway/routes`: routes of a tenant, whose changes are audited."""

from typing import Any

import pytest
from django.db import IntegrityError

from auditlog.models import AuditEntry
from auditlog.tests.factories import facts_of
from auditlog.vocabulary import AuditAction
from compliance.core import environments
from compliance.stores import asking
from compliance.stores.asking import ThreadAsker
from compliance.tests.client import ApiClient
from gateway import services
from gateway.deciding import known_routes
from gateway.models import GatewayRoute
from gateway.tests.factories import Gateway, make_route
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant

PATH = "/v1/gateway/routes"
FIELDS: dict[str, Any] = {
    "name": "orders", "credentials": ["bearer", "dpop"], "action": "place_order", "audience": "https://a.example",
    "highest_band": "low", "root": "verified", "agents": "any", "nonce_required": True,
    "uncertified_agents": True,
}  # fmt: skip


@pytest.fixture
def client(api: ApiClient, tenant: Tenant) -> ApiClient:
    return api.as_key(make_key(tenant, ["gateway:read", "gateway:write"]))


def audited(tenant: Tenant, action: AuditAction) -> list[AuditEntry]:
    return list(AuditEntry.objects.for_tenant(tenant.id).of_type(action).order_by("id"))


def test_route_is_created_with_what_was_said_and_audited(client: ApiClient, tenant: Tenant) -> None:
    answer = client.post(PATH, FIELDS)

    data = answer.json()["data"]
    assert answer.status_code == 201, answer.content
    assert {name: data[name] for name in FIELDS} == FIELDS
    (entry,) = audited(tenant, AuditAction.GATEWAY_ROUTE_CREATED)
    assert (entry.affected_id, facts_of(entry)) == (data["id"], {"name": "orders", "fields": FIELDS})
    assert client.get(f"{PATH}/{data['id']}").json()["data"] == data


def test_defaults_admit_all_but_what_is_stopped(client: ApiClient) -> None:
    data = client.post(PATH, {"name": "r", "credentials": ["serial", "serial"]}).json()["data"]

    assert data["credentials"] == ["serial"]
    assert (data["action"], data["audience"], data["highest_band"]) == (None, None, "high")
    assert (data["root"], data["agents"], data["nonce_required"]) == ("any", "own", False)
    assert data["uncertified_agents"] is False


def test_routes_are_listed_by_name(client: ApiClient, tenant: Tenant) -> None:
    for name in ("b", "a", "c"):
        make_route(tenant, name=name)
    make_route(make_tenant("Beside"), name="other")

    assert [row["name"] for row in client.get(PATH).json()["data"]] == ["a", "b", "c"]


def test_change_is_audited_with_before_and_after(client: ApiClient, tenant: Tenant) -> None:
    route = make_route(tenant, highest_band="high")

    answer = client.patch(f"{PATH}/{route.id}", {"highest_band": "low", "agents": "own"})

    assert answer.json()["data"]["highest_band"] == "low"
    (entry,) = audited(tenant, AuditAction.GATEWAY_ROUTE_UPDATED)
    assert entry.metadata is not None
    assert entry.metadata["changes"] == {"highest_band": {"before": "high", "after": "low"}}
    client.patch(f"{PATH}/{route.id}", {"highest_band": "low"})
    assert len(audited(tenant, AuditAction.GATEWAY_ROUTE_UPDATED)) == 1


def test_deleted_route_is_gone_for_its_gateway(
    client: ApiClient, tenant: Tenant, django_capture_on_commit_callbacks: Any
) -> None:
    route = make_route(tenant)
    gateway = Gateway(tenant, route=route.name)
    assert gateway.ask().status_code == 401

    with django_capture_on_commit_callbacks(execute=True):
        assert client.delete(f"{PATH}/{route.id}").status_code == 204

    assert (gateway.ask().status_code, client.get(f"{PATH}/{route.id}").status_code) == (404, 404)
    assert len(audited(tenant, AuditAction.GATEWAY_ROUTE_DELETED)) == 1


@pytest.mark.parametrize(("fields", "told"), [
    ({"root": "verified"}, "root: "),
    ({"credentials": ["bearer"], "nonce_required": True}, "nonce_required: "),
    ({"name": "Orders"}, "name: "),
    ({"name": "a\n"}, "name: "),
    ({"action": "a b"}, "action: "),
    ({"audience": "a\u200b"}, "audience: "),
])  # fmt: skip
def test_route_that_makes_no_sense_is_refused(client: ApiClient, fields: dict[str, Any], told: str) -> None:
    answer = client.post(PATH, {"name": "r", "credentials": ["serial", "dpop"], **fields})

    assert answer.status_code == 400, answer.content
    assert answer.json()["error"].startswith(told)


def test_name_is_the_tenant_s_once(client: ApiClient, tenant: Tenant) -> None:
    make_route(tenant, name="a")
    other = make_route(tenant, name="b")
    make_route(make_tenant("Beside"), name="c")

    assert client.post(PATH, {"name": "a", "credentials": ["dpop"]}).status_code == 409
    assert client.patch(f"{PATH}/{other.id}", {"name": "a"}).status_code == 409
    assert client.patch(f"{PATH}/{other.id}", {"name": "c"}).status_code == 200


def test_tenant_has_so_many_routes_and_no_more(
    client: ApiClient, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "MOST_ROUTES", 1)
    make_route(tenant)

    assert client.post(PATH, {"name": "another", "credentials": ["dpop"]}).status_code == 409


@pytest.mark.parametrize("fields", [
    {"credentials": []}, {"credentials": ["x"]}, {"highest_band": "x"}, {"root": "x"}, {"agents": "x"},
    {"credentials": ["serial"], "root": "verified"}, {"credentials": ["serial"], "nonce_required": True},
])  # fmt: skip
def test_database_holds_the_same_rules(tenant: Tenant, fields: dict[str, Any]) -> None:
    route = make_route(tenant, credentials=["dpop"])

    with pytest.raises(IntegrityError), environments.atomic():
        GatewayRoute.objects.filter(id=route.id).update(**fields)


def test_route_is_read_once_while_it_is_fresh(tenant: Tenant, django_assert_num_queries: Any) -> None:
    route = make_route(tenant)
    name = (tenant.id, route.name)
    asker = ThreadAsker()
    asking.run(known_routes.find({name}, asker))

    with django_assert_num_queries(0):
        assert asking.run(known_routes.find({name}, asker))[name].name == route.name
