"""`POST /oauth/revoke`, and `/v1/delegations`: the end of a token and of all that came of it."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.client import ApiClient
from delegation import services
from delegation.errors import ParentTokenRejected
from delegation.models import IssuedToken
from delegation.standing import standings
from delegation.tests.factories import ACTOR, CHAIN, as_chain, make_line, make_token
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant, make_test_key

FORM = "application/x-www-form-urlencoded"
LONGER = as_chain([*CHAIN, {"sub": "quote-service", "type": "service"}])


@pytest.fixture
def client(api: ApiClient, tenant: Tenant) -> ApiClient:
    return api.as_key(make_key(tenant, ["delegations:revoke"]))


def revoke(client: ApiClient, **form: str) -> Any:
    return client.raw("POST", "/oauth/revoke", urlencode(form).encode(), FORM)


def stand(*issued: Any) -> list[bool]:
    return [one.stands for one in standings([each.delegation for each in issued], now=now())]


def entries(tenant: Tenant) -> list[AuditEntry]:
    return list(AuditEntry.objects.for_tenant(tenant.id).filter(event_type="delegation.revoked"))


def test_a_token_is_revoked(client: ApiClient, agent: Agent, tenant: Tenant) -> None:
    issued = make_token(agent)

    answer = revoke(client, token=issued.token)

    assert (answer.status_code, answer.json(), answer["Cache-Control"]) == (200, {}, "no-store")
    assert stand(issued) == [False]
    (entry,) = entries(tenant)
    assert entry.metadata is not None
    assert (entry.metadata["token_id"], entry.metadata["descendants"]) == (str(issued.delegation.token_id), 0)
    assert issued.token not in str(entry.metadata)


def test_all_that_came_of_it_ends_and_nothing_before_it(client: ApiClient, tenant: Tenant) -> None:
    foreign = make_tenant("Other")
    agents = [make_agent(tenant if number < 4 else foreign, name=f"a{number}") for number in range(8)]
    line = make_line(agents)
    sibling = make_token(agents[1], chain=LONGER[:1] + LONGER, parent_token=None)

    revoke(client, token=line[2].token)

    assert stand(*line) == [True, True] + [False] * 6
    assert stand(sibling) == [True]
    (entry,) = entries(tenant)
    assert entry.metadata is not None
    assert entry.metadata["descendants"] == 5


def test_revoking_again_changes_nothing(client: ApiClient, agent: Agent, tenant: Tenant) -> None:
    issued = make_token(agent)
    revoke(client, token=issued.token)
    first = IssuedToken.objects.get()

    assert revoke(client, token=issued.token).status_code == 200

    again = IssuedToken.objects.get()
    assert (again.revoked_at, again.revoked_by) == (first.revoked_at, first.revoked_by)
    assert len(entries(tenant)) == 1


@pytest.mark.parametrize("token", ["x", "a.b.c", "é", "x" * 60_000])
def test_an_unknown_token_is_no_error(client: ApiClient, tenant: Tenant, token: str) -> None:
    assert revoke(client, token=token).status_code == 200
    assert not entries(tenant)


def test_an_expired_token_is_left_alone(client: ApiClient, agent: Agent, tenant: Tenant) -> None:
    issued = make_token(agent, at=now() - timedelta(hours=2))

    assert revoke(client, token=issued.token).status_code == 200
    assert not entries(tenant)


def test_only_the_issuing_tenant_may(client: ApiClient, tenant: Tenant) -> None:
    own, foreign = make_agent(tenant), make_agent(make_tenant("Other"))
    line = make_line([own, foreign])

    answer = revoke(client, token=line[1].token)

    assert (answer.status_code, answer.json()["error"]) == (400, "unauthorized_client")
    assert stand(*line) == [True, True]


def test_a_token_of_the_other_environment_is_left_alone(client: ApiClient, tenant: Tenant) -> None:
    make_test_key(tenant)
    with environments.use(Environment.TEST):
        issued = make_token(make_agent(tenant))

    assert revoke(client, token=issued.token).status_code == 200
    with environments.use(Environment.TEST):
        assert stand(issued) == [True]


def test_key_needs_the_scope(api: ApiClient, agent: Agent, tenant: Tenant) -> None:
    issued = make_token(agent)

    assert revoke(api, token=issued.token).status_code == 401
    lacking = revoke(api.as_key(make_key(tenant, ["delegations:issue"])), token=issued.token)
    assert (lacking.status_code, lacking.json()["error"]) == (400, "unauthorized_client")
    assert stand(issued) == [True]


@pytest.mark.parametrize("place", [0, 1])
def test_a_revoked_parent_or_ancestor_is_not_handed_on(tenant: Tenant, place: int) -> None:
    line = make_line([make_agent(tenant, name=f"a{number}") for number in range(2)])
    services.revoke(
        tenant_id=tenant.id, token_id=line[place].delegation.token_id, reason="x", actor=ACTOR, now=now()
    )

    longer = as_chain([*({"sub": f"actor-{n}", "type": "agent"} for n in range(3))])
    with pytest.raises(ParentTokenRejected):
        make_token(make_agent(tenant, name="last"), chain=longer, parent_token=line[1].token)


def test_a_parent_that_should_have_a_row_and_has_none_is_refused(agent: Agent) -> None:
    parent = make_token(agent).token
    IssuedToken.objects.all().delete()

    with pytest.raises(ParentTokenRejected):
        make_token(agent, chain=LONGER, parent_token=parent)


@pytest.fixture
def owner(api: ApiClient, tenant: Tenant) -> ApiClient:
    return api.as_key(make_key(tenant, ["delegations:read", "delegations:revoke"]))


def test_a_token_is_revoked_by_its_id(owner: ApiClient, agent: Agent) -> None:
    issued = make_token(agent)
    path = f"/v1/delegations/{issued.delegation.token_id}"

    data = owner.post(f"{path}/revoke", {"reason": "decommissioned"}).json()["data"]

    assert (data["state"], data["reason"], data["revocation_reason"]) == (
        "revoked",
        "revoked",
        "decommissioned",
    )
    again = owner.post(f"{path}/revoke", {"reason": "other"})
    assert (again.status_code, again.json()["data"]["revocation_reason"]) == (200, "decommissioned")
    assert owner.get(path).json()["data"] == data


def test_a_tenant_lists_its_own_newest_first(owner: ApiClient, agent: Agent) -> None:
    start = now()
    issued = [make_token(agent, at=start - timedelta(seconds=back)) for back in (3, 2, 1)]
    make_token(make_agent(make_tenant("Other")))

    first = owner.get("/v1/delegations?limit=2").json()
    rest = owner.get(f"/v1/delegations?limit=2&before={first['next_cursor']}").json()

    assert (first["has_next_page"], rest["has_next_page"]) == (True, False)
    found = [row["token_id"] for row in first["data"] + rest["data"]]
    assert found == [str(one.delegation.token_id) for one in reversed(issued)]
    assert "token" not in first["data"][0]


def test_the_list_is_filtered_by_agent_and_by_whether_tokens_stand(owner: ApiClient, tenant: Tenant) -> None:
    one, other = make_agent(tenant, name="one"), make_agent(tenant, name="other")
    line = make_line([one, other])
    expired = make_token(other, at=now() - timedelta(hours=2))
    services.revoke(
        tenant_id=tenant.id, token_id=line[0].delegation.token_id, reason="x", actor=ACTOR, now=now()
    )
    standing = make_token(one)

    def listed(query: str) -> dict[str, tuple[str, str | None]]:
        rows = owner.get(f"/v1/delegations?{query}").json()["data"]
        return {row["token_id"]: (row["state"], row["reason"]) for row in rows}

    revoked_id, stopped_id, expired_id, standing_id = (
        str(one.delegation.token_id) for one in (*line, expired, standing)
    )
    assert listed("active=true") == {standing_id: ("active", None)}
    assert listed("active=false") == {
        revoked_id: ("revoked", "revoked"),
        stopped_id: ("stopped", "parent_revoked"),
        expired_id: ("expired", "expired"),
    }
    assert set(listed(f"agent_id={one.id}")) == {revoked_id, standing_id}
    assert set(listed(f"agent_id={one.id}&active=true")) == {standing_id}
