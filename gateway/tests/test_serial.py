"""The pattern of the interface specification: a certificate's serial number and the requested action."""

from typing import Any
from urllib.parse import unquote

import pytest

from agents.models import Agent
from certificates.pki.serials import format_serial, new_serial
from certificates.tests.factories import (
    make_certified_agent,
    make_past_end,
    reinstate_agent,
    revoke_certificate,
    suspend_agent,
)
from compliance.api.gate import Scope
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.client import ApiClient
from gateway.deciding.identity import NAMES
from gateway.tests.factories import (
    PATH,
    PERMITTED,
    Gateway,
    is_fault_of_gateway,
    make_permitted_agent,
    make_route,
    refusal,
    serial_of,
)
from tenancy.models import Tenant
from tenancy.tests.factories import (
    make_expired_key,
    make_key,
    make_revoked_key,
    make_tenant,
    make_test_key,
)


def test_active_agent_passes_with_its_identity(gateway: Gateway, agent: Agent) -> None:
    answer = gateway.ask_serial(agent)

    told = {name: answer[f"X-Service-{name}"] for name in NAMES}
    assert (answer.status_code, answer["X-Service-Gateway-Decision"]) == (200, "allow")
    assert answer["Cache-Control"] == "no-store"
    assert told == {
        "Agent-Id": str(agent.id),
        "Agent-Did": agent.did,
        "Tenant-Id": str(agent.tenant_id),
        "Principal": agent.did,
        "Chain": f"agent={agent.did}",
        "Scope": " ".join(PERMITTED),
        "Action": "read",
        "Risk-Band": "low",
        "Cert-Serial": serial_of(agent),
        "Environment": "live",
        "Assurance": "asserted",
        "Credential": "serial",
    }
    data = answer.json()["data"]
    assert (data["agent_id"], data["certificate_serial"]) == (str(agent.id), serial_of(agent))
    assert data["chain"] == [{"sub": agent.did, "type": "agent"}]


def test_serial_is_read_in_any_spelling(gateway: Gateway, agent: Agent) -> None:
    serial = serial_of(agent)
    spelt = ":".join(serial[at : at + 2] for at in range(0, 40, 2)).upper()

    assert gateway.ask(**{"X-Service-Cert-Serial": f" {spelt} "}).status_code == 200


@pytest.mark.parametrize(
    ("end", "told", "reason"),
    [
        (revoke_certificate, "Certificate is revoked", "certificate_revoked"),
        (make_past_end, "Certificate has expired", "certificate_expired"),
    ],
)
def test_certificate_that_has_ended_is_refused(
    gateway: Gateway, agent: Agent, end: Any, told: str, reason: str
) -> None:
    serial = serial_of(agent)
    end(agent.certificates.get())

    assert refusal(gateway.ask(**{"X-Service-Cert-Serial": serial})) == (403, told, reason)


def test_suspended_agent_is_refused_until_it_is_reinstated(gateway: Gateway, agent: Agent) -> None:
    headers = {"X-Service-Cert-Serial": serial_of(agent)}
    suspend_agent(agent)
    assert refusal(gateway.ask(**headers)) == (403, "Agent is suspended", "agent_suspended")

    reinstate_agent(agent)

    assert gateway.ask(**headers).status_code == 200


def test_action_outside_the_scope_is_refused_in_the_words_of_the_specification(
    gateway: Gateway, agent: Agent
) -> None:
    gateway.action = "delete"

    assert refusal(gateway.ask_serial(agent)) == (403, "Scope violation", "scope_violation")


def test_action_is_compared_as_it_is_written(gateway: Gateway, agent: Agent) -> None:
    for action in ("READ", "rea", "read,pay", "read*"):
        assert gateway.ask_serial(agent, X_Service_Action=action).status_code == 403, action


def test_agent_that_declares_no_scope_is_refused_without_a_strike(gateway: Gateway, tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)

    assert refusal(gateway.ask_serial(agent)) == (403, "Scope violation", "scope_undeclared")
    assert agent.events.count() == 0


def test_serial_that_is_none_is_refused(gateway: Gateway, agent: Agent) -> None:
    for serial in ["", "nonsense", "0" * 40, "f" * 5_000, "\u0661" * 3, "4f\x01", "é"]:
        answer = gateway.ask(**{"X-Service-Cert-Serial": serial})

        assert refusal(answer)[0] == 401
        assert "WWW-Authenticate" in answer


def test_unknown_serials_of_either_environment_are_refused_alike(gateway: Gateway, agent: Agent) -> None:
    for environment in Environment:
        serial = format_serial(new_serial(environment))
        answer = gateway.ask(**{"X-Service-Cert-Serial": serial})
        assert refusal(answer) == (401, "Certificate not found", "certificate_unknown")


def test_agent_of_another_tenant_is_unknown_unless_the_route_takes_any(
    gateway: Gateway, agent: Agent
) -> None:
    stranger = make_permitted_agent(make_tenant("Beside"))
    assert refusal(gateway.ask_serial(stranger)) == (401, "Certificate not found", "certificate_unknown")

    gateway.route = make_route(gateway.tenant, agents="any").name

    assert gateway.ask_serial(stranger)["X-Service-Tenant-Id"] == str(stranger.tenant_id)


def test_sandbox_and_live_agents_do_not_mix(gateway: Gateway, agent: Agent, tenant: Tenant) -> None:
    sandbox = Gateway(tenant, key=make_test_key(tenant))
    with environments.use(Environment.TEST):
        tried = make_permitted_agent(Tenant.objects.get(id=tenant.id))
        serial = serial_of(tried)

    assert sandbox.ask(**{"X-Service-Cert-Serial": serial})["X-Service-Environment"] == "test"
    assert refusal(gateway.ask(**{"X-Service-Cert-Serial": serial}))[0] == 401
    assert refusal(sandbox.ask_serial(agent))[0] == 401


def test_wrong_keys_of_the_gateway_are_no_decision_about_its_client(
    tenant: Tenant, gateway: Gateway, agent: Agent
) -> None:
    keys = ["nonsense", "service_live_" + "x" * 43, make_revoked_key(tenant), make_expired_key(tenant)]
    for key in keys:
        assert is_fault_of_gateway(Gateway(tenant, key=key).ask_serial(agent), 401), key
    without = ApiClient().get(PATH, **{"X-Service-Cert-Serial": serial_of(agent)})
    assert is_fault_of_gateway(without, 401)
    powerless = Gateway(tenant, key=make_key(tenant, ["agents:read"]))
    assert is_fault_of_gateway(powerless.ask_serial(agent), 403)


def test_gateway_may_send_its_key_as_the_bearer(gateway: Gateway, agent: Agent) -> None:
    client = ApiClient(gateway.key)

    answer = client.get(PATH, **{"X-Service-Cert-Serial": serial_of(agent), "X-Service-Action": "read"})

    assert answer.status_code == 200


def test_api_key_is_no_credential_of_a_client(gateway: Gateway, agent: Agent) -> None:
    answer = gateway.ask_serial(agent, Authorization=f"Bearer {gateway.key}")

    assert refusal(answer) == (401, "The token is not valid", "malformed")


def test_route_and_action_that_are_wrong_are_faults_of_the_gateway(gateway: Gateway, agent: Agent) -> None:
    serial = {"X-Service-Cert-Serial": serial_of(agent)}
    beside = make_route(make_tenant("Beside"))

    for name in ("nonsense", beside.name, "x" * 5_000, "\xe9"):
        assert is_fault_of_gateway(gateway.ask(**serial, X_Service_Gateway_Route=name), 404), name
    for action in ("", "a b", 'a"b', "a\\b", "\xe9", "x" * 257):
        assert is_fault_of_gateway(gateway.ask(**serial, X_Service_Action=action), 400), action


def test_action_of_the_route_outweighs_the_header(gateway: Gateway, agent: Agent) -> None:
    gateway.route = make_route(gateway.tenant, action="pay").name

    answer = gateway.ask_serial(agent, X_Service_Action="read")

    assert answer["X-Service-Action"] == "pay"


def test_serial_suffices_only_where_the_route_says_so(gateway: Gateway, agent: Agent) -> None:
    gateway.route = make_route(gateway.tenant, credentials=["dpop"]).name

    answer = gateway.ask_serial(agent)

    assert refusal(answer)[::2] == (401, "credential_missing")
    assert answer["WWW-Authenticate"].startswith('DPoP realm="gateway", algs="ES256 ')
    assert "Bearer" not in answer["WWW-Authenticate"]


def test_refused_token_leaves_no_way_by_the_serial(gateway: Gateway, agent: Agent) -> None:
    assert refusal(gateway.ask_serial(agent, Authorization="Bearer nonsense"))[0] == 401


def test_authorization_is_not_read_where_no_token_counts(gateway: Gateway, agent: Agent) -> None:
    gateway.route = make_route(gateway.tenant, credentials=["serial"]).name

    assert gateway.ask_serial(agent, Authorization="Bearer of-the-application").status_code == 200
    assert gateway.ask_serial(agent, Authorization="Basic eDp5").status_code == 200


def test_highest_band_of_the_route_counts(gateway: Gateway, agent: Agent) -> None:
    for band, score, status in [
        ("low", 0.2, 200),
        ("low", 0.5, 403),
        ("medium", 0.5, 200),
        ("medium", 0.9, 403),
        ("high", 0.9, 200),
    ]:
        gateway.route = make_route(gateway.tenant, highest_band=band).name
        Agent.objects.filter(id=agent.id).update(risk_score=score, risk_updated_at=now())

        answer = gateway.ask_serial(agent)

        assert answer.status_code == status
        if status == 403:
            assert refusal(answer)[2] == "risk_band"


def test_scope_with_any_characters_stays_within_its_header(gateway: Gateway, tenant: Tenant) -> None:
    names = ["read", "a b", "ü,=;\n", "100%"]
    agent = make_permitted_agent(tenant, metadata={"permitted_actions": names})

    header = gateway.ask_serial(agent)["X-Service-Scope"]

    assert (header.isascii(), header.isprintable()) == (True, True)
    assert [unquote(one) for one in header.split(" ")] == names


@pytest.mark.parametrize("path", ["/", "/orders/7/?x=%zz"])
def test_gateways_may_ask_with_the_clients_own_method_and_path(
    gateway: Gateway, agent: Agent, path: str
) -> None:
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]:
        serial = {"X-Service-Cert-Serial": serial_of(agent)}

        answer = gateway.ask(f"{PATH}{path}", method=method, **serial)

        assert (answer.status_code, answer["X-Service-Agent-Id"]) == (200, str(agent.id))


def test_asking_by_options_needs_the_scope_too(tenant: Tenant, api: ApiClient) -> None:
    key = make_key(tenant, scopes=[Scope.AGENTS_READ])

    answer = api._send("OPTIONS", "/v1/gateway/authorize/orders", {}, {"X-Service-Gateway-Key": key})

    assert answer.status_code == 403
