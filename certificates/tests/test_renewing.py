"""Renewals of blueprints: agents are brought up to date, in portions, by whoever goes on with it."""

from datetime import timedelta
from typing import Any

import pytest

from agents.models import Agent, AgentStatus, Blueprint, BlueprintRenewal
from agents.tests.factories import make_agent, make_blueprint
from auditlog.models import AuditEntry
from certificates.issuing import issuance
from certificates.models import Certificate
from certificates.renewing import services
from certificates.tests.factories import make_certificate, make_certified_agent, stock_pool
from compliance.core.clock import now
from compliance.core.errors import InvalidState, Unavailable
from compliance.stores.portions import PATIENCE
from compliance.tests.client import ApiClient
from tenancy.models import Tenant
from tenancy.tests.factories import ACTOR, make_key, make_tenant

SCOPE = ["read", "pay"]


@pytest.fixture(autouse=True)
def stocked() -> None:
    """Renewals find keys in the pool, and wait for none to be generated."""
    stock_pool(4)


@pytest.fixture
def blueprint(tenant: Tenant) -> Blueprint:
    return make_blueprint(tenant, permitted_actions=SCOPE, validity_days=90)


@pytest.fixture
def agent(blueprint: Blueprint) -> Agent:
    """A certified agent that differs from its blueprint."""
    agent = make_follower(blueprint)
    change(blueprint, permitted_actions=["pay"])
    return agent


@pytest.fixture
def begun(client: ApiClient, blueprint: Blueprint, agent: Agent) -> str:
    """A renewal of that agent, as far as the request goes."""
    return str(renew(client, blueprint).json()["data"]["id"])


def make_follower(blueprint: Blueprint, *, certified: bool = True, **fields: Any) -> Agent:
    agent = make_agent(blueprint.tenant, blueprint_id=blueprint.id, model_hash="", **fields)
    if certified:
        make_certificate(agent, at=now() - timedelta(hours=1))
    return agent


def change(blueprint: Blueprint, **fields: Any) -> None:
    Blueprint.objects.filter(id=blueprint.id).update(**fields)


def renew(client: ApiClient, blueprint: Blueprint, body: Any = None) -> Any:
    return client.post(f"/v1/blueprints/{blueprint.id}/renew", body or {"all_differing": True})


def shown(client: ApiClient, renewal_id: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/v1/blueprint-renewals/{renewal_id}").json()["data"]
    return found


def finished(client: ApiClient, renewal_id: str) -> dict[str, Any]:
    """Go on with a renewal to its end, and return it as shown then."""
    while services.RENEWALS.advance(job_id=renewal_id, now=now()):
        pass
    return shown(client, renewal_id)


def renewed(client: ApiClient, blueprint: Blueprint, body: Any = None) -> dict[str, int]:
    """Renew to the end, and count the outcomes."""
    return outcomes(finished(client, renew(client, blueprint, body).json()["data"]["id"]))


def outcomes(data: dict[str, Any]) -> dict[str, int]:
    names = ("pending", "renewed", "updated", "unchanged", "skipped", "failed")
    return {name: data[name] for name in names if data[name]}


def scope_of(agent: Agent) -> Any:
    return Certificate.objects.of_agent(agent.id).active(now()).get().claims["permitted_actions"]


def test_certify_takes_the_blueprints_validity(blueprint: Blueprint) -> None:
    followed = make_certificate(make_follower(blueprint, certified=False))
    shorter = make_certificate(make_follower(blueprint, certified=False, validity_days=7))

    assert followed.expires_at - followed.issued_at <= timedelta(days=90)
    assert shorter.expires_at - shorter.issued_at <= timedelta(days=7)


def test_what_an_agent_states_itself_is_not_widened_after_it_was_narrowed(
    client: ApiClient, blueprint: Blueprint
) -> None:
    stated = {"metadata": {"permitted_actions": ["read"]}, "validity_days": 30}
    agent = make_follower(blueprint, certified=False, **stated)

    change(blueprint, permitted_actions=[], validity_days=7)
    renewed(client, blueprint)
    change(blueprint, permitted_actions=SCOPE, validity_days=90)
    renewed(client, blueprint)

    agent.refresh_from_db()
    assert (agent.permitted_actions, agent.validity_days) == ([], 7)


def test_differing_agents_are_brought_up_to_date(client: ApiClient, blueprint: Blueprint) -> None:
    certified, pending = make_follower(blueprint), make_follower(blueprint, certified=False)
    narrow = make_follower(blueprint, metadata={"permitted_actions": ["pay", "read"]})
    suspended, same = make_follower(blueprint), make_follower(blueprint, metadata={"permitted_actions": []})
    Agent.objects.filter(id=suspended.id).update(status=AgentStatus.SUSPENDED)
    change(blueprint, permitted_actions=["pay", "write"])

    answer = renew(client, blueprint)

    assert answer.status_code == 202
    begun = answer.json()["data"]
    assert (begun["matched"], outcomes(begun), begun["ended_at"]) == (4, {"pending": 4}, None)
    ended = finished(client, begun["id"])
    assert outcomes(ended) == {"renewed": 2, "updated": 1, "skipped": 1}
    assert ended["ended_at"] is not None
    assert ended["unrenewed"] == [
        {"agent_id": str(suspended.id), "outcome": "skipped", "error": "Agent is suspended"}
    ]
    assert (scope_of(certified), scope_of(narrow)) == (["pay", "write"], ["pay"])
    pending.refresh_from_db()
    assert pending.permitted_actions == ["pay", "write"]
    assert Certificate.objects.of_agent(same.id).count() == 1
    actions = AuditEntry.objects.about(str(blueprint.id)).values_list("event_type", flat=True)
    assert {"blueprint.renewal_started", "blueprint.renewal_done"} <= set(actions)
    assert AuditEntry.objects.about(str(certified.id)).filter(event_type="agent.updated").count() == 1


def test_picked_agents_alone_are_renewed(client: ApiClient, blueprint: Blueprint) -> None:
    picked, other = make_follower(blueprint), make_follower(blueprint)
    change(blueprint, permitted_actions=["pay"])

    assert renewed(client, blueprint, {"agent_ids": [str(picked.id)]}) == {"renewed": 1}

    assert (scope_of(picked), scope_of(other)) == (["pay"], SCOPE)
    assert renewed(client, blueprint, {"agent_ids": [str(picked.id)]}) == {"unchanged": 1}


def test_what_no_certificate_states_needs_none(client: ApiClient, blueprint: Blueprint) -> None:
    agent = make_follower(blueprint)
    change(blueprint, alarm_budget=0.02, owner_name="Kim", owner_email="kim@example.com")

    assert renewed(client, blueprint) == {"updated": 1}

    agent.refresh_from_db()
    assert (agent.alarm_budget, agent.owner_email) == (0.02, "kim@example.com")
    assert Certificate.objects.of_agent(agent.id).count() == 1


def test_an_agent_whose_renewal_failed_differs_until_its_certificate_is_renewed(
    client: ApiClient, blueprint: Blueprint, agent: Agent, begun: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/v1/blueprints/{blueprint.id}"

    def refuse(**asked: Any) -> Any:
        raise InvalidState("refused")

    with monkeypatch.context() as patch:
        patch.setattr(issuance, "renew", refuse)
        assert outcomes(finished(client, begun)) == {"failed": 1}

    listed = client.get(f"/v1/agents?differs_from={blueprint.id}").json()["data"]
    assert [one["id"] for one in listed] == [str(agent.id)]
    assert client.get(path).json()["data"]["differing"] == 1

    assert renewed(client, blueprint) == {"renewed": 1}

    assert scope_of(agent) == ["pay"]
    assert client.get(path).json()["data"]["differing"] == 0
    assert AuditEntry.objects.about(agent.id).of_type("agent.updated").count() == 1


@pytest.mark.parametrize(
    ("certified", "metadata", "is_wider"),
    [
        (["a", "b"], {"permitted_actions": ["b", "a"]}, False),
        (["a"], {"permitted_actions": ["a", "b"]}, False),
        (["a", "b"], {"permitted_actions": ["a"]}, True),
        (["a"], {"permitted_actions": []}, True),
        ([], {"permitted_actions": []}, False),
        (None, {"permitted_actions": ["a"]}, True),
        (["a"], {"permitted_actions": None}, False),
        (["a"], {"note": "n"}, False),
        (["a"], None, False),
        (["a"], {"scopes": ["x"]}, True),
        (None, {"scopes": ["x"], "permitted_actions": None}, True),
        ([], {"scopes": ["x"]}, False),
    ],
)
def test_a_certificate_is_wider_if_it_permits_more_than_the_profile(
    tenant: Tenant, certified: Any, metadata: Any, is_wider: bool
) -> None:
    agent = make_certified_agent(tenant)
    own = Certificate.objects.of_agent(agent.id)
    certificate = own.get()
    certificate.claims = {**certificate.claims, "permitted_actions": certified}
    certificate.save()
    Agent.objects.filter(id=agent.id).update(metadata=metadata)

    assert own.wider_than_profile().exists() is is_wider


@pytest.mark.parametrize("is_signed", [False, True])
def test_a_killed_renewal_is_gone_on_with_and_renews_once(
    client: ApiClient, agent: Agent, begun: str, monkeypatch: pytest.MonkeyPatch, is_signed: bool
) -> None:
    sign = issuance.renew

    def die(**asked: Any) -> Any:
        if is_signed:
            sign(**asked)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(issuance, "renew", die)
        with pytest.raises(KeyboardInterrupt):
            services.RENEWALS.advance(job_id=begun, now=now())
    assert outcomes(shown(client, begun)) == {"renewed" if is_signed else "pending": 1}

    assert outcomes(finished(client, begun)) == {"renewed": 1}

    assert Certificate.objects.of_agent(agent.id).count() == 2
    assert scope_of(agent) == ["pay"]


def test_the_hsm_is_waited_for(client: ApiClient, begun: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(**asked: Any) -> Any:
        raise Unavailable()

    with monkeypatch.context() as patch:
        patch.setattr(issuance, "renew", away)
        with pytest.raises(Unavailable):
            services.RENEWALS.advance(job_id=begun, now=now())

    assert services.RENEWALS.sweep(now=now()) == 0
    assert services.RENEWALS.sweep(now=now() + PATIENCE + timedelta(seconds=1)) == 1
    assert outcomes(finished(client, begun)) == {"renewed": 1}


def test_an_agent_in_its_renewal_pause_holds_up_no_other(client: ApiClient, blueprint: Blueprint) -> None:
    paused, other = make_follower(blueprint), make_follower(blueprint)
    asked: dict[str, Any] = {"tenant_id": blueprint.tenant_id, "agent_id": paused.id, "actor": ACTOR}
    issuance.renew_of_agent(**asked, now=now())
    change(blueprint, permitted_actions=["pay"])

    assert renewed(client, blueprint) == {"pending": 1, "renewed": 1}

    assert Certificate.objects.of_agent(other.id).count() == 2


def test_a_certificate_that_ended_meanwhile_is_a_failure(
    client: ApiClient, agent: Agent, begun: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign = issuance.renew

    def end(**asked: Any) -> Any:
        Certificate.objects.of_agent(agent.id).update(expires_at=now() - timedelta(seconds=1))
        return sign(**asked)

    monkeypatch.setattr(issuance, "renew", end)
    ended = finished(client, begun)
    assert (outcomes(ended), ended["unrenewed"][0]["error"]) == ({"failed": 1}, "Certificate has expired")


@pytest.mark.parametrize("overlap", [timedelta(0), timedelta(hours=1)])
def test_an_agent_renewed_by_another_meanwhile_is_looked_at_again(
    client: ApiClient, agent: Agent, begun: str, monkeypatch: pytest.MonkeyPatch, overlap: timedelta
) -> None:
    sign = issuance.renew

    def overtaken(**asked: Any) -> Any:
        sign(**{**asked, "adjust": None, "overlap": overlap})
        return sign(**asked)

    with monkeypatch.context() as other:
        other.setattr(issuance, "renew", overtaken)
        services.RENEWALS.advance(job_id=begun, now=now())
    waiting = outcomes(shown(client, begun))
    Certificate.objects.of_agent(agent.id).update(issued_at=now() - timedelta(minutes=5))

    assert (waiting, outcomes(finished(client, begun))) == ({"pending": 1}, {"renewed": 1})
    assert Agent.objects.get(id=agent.id).permitted_actions == ["pay"]


@pytest.mark.parametrize(
    "body", [{}, {"all_differing": False}, {"agent_ids": []}, {"x": 1}, {"agent_ids": ["x"]}]
)
def test_a_malformed_request_is_a_400(client: ApiClient, blueprint: Blueprint, body: Any) -> None:
    assert client.post(f"/v1/blueprints/{blueprint.id}/renew", body).status_code == 400


def test_agents_of_others_are_unknown(client: ApiClient, blueprint: Blueprint, tenant: Tenant) -> None:
    for stranger in (make_agent(tenant), make_agent(make_tenant())):
        assert renew(client, blueprint, {"agent_ids": [str(stranger.id)]}).status_code == 404
    assert not BlueprintRenewal.objects.exists()


def test_keys_need_both_scopes(blueprint: Blueprint, tenant: Tenant) -> None:
    for scopes in (["agents:write"], ["certificates:issue"], ["agents:read"]):
        assert renew(ApiClient(make_key(tenant, scopes)), blueprint).status_code == 403
    both = ApiClient(make_key(tenant, ["agents:write", "certificates:issue"]))
    assert renew(both, blueprint).status_code == 202
