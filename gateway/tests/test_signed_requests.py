"""Requests that an agent signed with its own key (RFC 9421, Web Bot Auth), as another library signs them."""

from datetime import timedelta
from typing import Any

import pytest

from agents.models import Agent
from agents.tests.factories import make_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from delegation import proofs
from delegation.agent_keys import services
from delegation.agent_keys.tests.signers import ACTOR, ENDED, Signer, register
from events.models import BehaviorEvent
from gateway.models import GatewayRoute
from gateway.tests.factories import (
    PATH,
    Gateway,
    forwarded,
    make_permitted_agent,
    make_route,
    refusal,
    serial_of,
)
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant, make_test_key


@pytest.fixture
def signer(agent: Agent) -> Signer:
    return registered(agent)


def registered(agent: Agent) -> Signer:
    found = Signer()
    register(agent, found.holder)
    return found


def ask(gateway: Gateway, headers: dict[str, str], **more: str) -> Any:
    return gateway.ask(**{**forwarded(), **headers, **more})


def test_signed_request_passes_with_its_agents_identity(
    gateway: Gateway, agent: Agent, signer: Signer
) -> None:
    answer = ask(gateway, signer.headers())

    assert (answer.status_code, answer["X-Service-Gateway-Decision"]) == (200, "allow")
    assert answer["X-Service-Agent-Id"] == str(agent.id)
    assert answer["X-Service-Credential"] == "httpsig"
    assert answer["X-Service-Cert-Serial"] == serial_of(agent)
    assert answer["X-Service-Chain"] == f"agent={agent.did}"


def test_signature_counts_once(gateway: Gateway, signer: Signer) -> None:
    headers = signer.headers()

    first, again = ask(gateway, headers), ask(gateway, headers)
    relabelled = {name: value.replace("sig1=", "sig2=", 1) for name, value in headers.items()}
    relabelled["Signature-Agent"] = headers["Signature-Agent"] + ", " + relabelled["Signature-Agent"]
    renamed = ask(gateway, relabelled)

    assert first.status_code == 200
    message = "Signature refused: it was used before"
    assert refusal(again) == (401, message, "signature_used")
    assert refusal(renamed)[2] in {"signature_used", "signature_components"}


def test_signatures_with_other_nonces_each_count(gateway: Gateway, signer: Signer) -> None:
    moment = now()

    answers = [ask(gateway, signer.headers(at=moment, nonce=nonce)) for nonce in "ab"]

    assert [answer.status_code for answer in answers] == [200, 200]


REFUSED: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    "too old": ({"at": timedelta(seconds=-90)}, {}, "signature_times"),
    "in the future": ({"at": timedelta(seconds=90)}, {}, "signature_times"),
    "covers too little": ({"covered": ("@authority", "signature-agent")}, {}, "signature_components"),
    "another method": ({}, forwarded("POST"), "invalid_signature"),
    "another path": ({}, forwarded(uri="/orders/8"), "invalid_signature"),
    "another host": ({}, {"X-Forwarded-Host": "other.example"}, "invalid_signature"),
    "cannot be read": ({}, {"Signature": "x"}, "signature_malformed"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_proves_nothing_of_the_request_is_refused(gateway: Gateway, signer: Signer, name: str) -> None:
    options, more, reason = REFUSED[name]
    if "at" in options:
        options = {**options, "at": now() + options["at"]}

    answer = ask(gateway, signer.headers(**options), **more)

    status, message, found = refusal(answer)
    assert (status, found) == (401, reason)
    assert message.startswith("Signature refused: ")
    assert answer["WWW-Authenticate"].endswith('Signature realm="gateway"')
    assert '("@method" "@authority" "@path" "signature-agent";key="sig1")' in answer["Accept-Signature"]


def test_query_may_change_unless_it_is_covered(gateway: Gateway, signer: Signer) -> None:
    other = forwarded(uri="/orders/7?x=2")
    covered = ("@method", "@target-uri", '"signature-agent";key="sig1"')

    assert ask(gateway, signer.headers(), **other).status_code == 200
    assert refusal(ask(gateway, signer.headers(covered=covered), **other))[2] == "invalid_signature"


def test_unknown_and_revoked_keys_are_refused(gateway: Gateway, agent: Agent, tenant: Tenant) -> None:
    signer = Signer()

    unknown = ask(gateway, signer.headers())
    key = register(agent, signer.holder)
    known = ask(gateway, signer.headers())
    services.revoke(
        tenant_id=tenant.id, agent_id=agent.id, key_id=key.id, reason="lost", actor=ACTOR, now=now()
    )
    revoked = ask(gateway, signer.headers())

    assert known.status_code == 200
    reason = (401, "Signature refused: no agent has this key in force", "signature_key_unknown")
    assert (refusal(unknown), refusal(revoked)) == (reason, reason)


def test_key_of_the_other_environment_is_unknown(gateway: Gateway, tenant: Tenant) -> None:
    with environments.use(Environment.TEST):
        mirrored = Gateway(tenant, key=make_test_key(tenant))
        signer = registered(make_permitted_agent(Tenant.objects.get(id=tenant.id)))

    assert refusal(ask(gateway, signer.headers()))[2] == "signature_key_unknown"
    assert ask(mirrored, signer.headers())["X-Service-Environment"] == "test"


def test_signature_by_another_key_is_invalid(gateway: Gateway, signer: Signer, tenant: Tenant) -> None:
    other = registered(make_permitted_agent(tenant))
    headers = signer.headers()
    headers["Signature-Input"] = headers["Signature-Input"].replace(signer.holder.jkt, other.holder.jkt)

    assert refusal(ask(gateway, headers))[2] == "invalid_signature"


@pytest.mark.parametrize("reason", ENDED)
def test_agent_that_does_not_stand_is_refused_at_once(
    gateway: Gateway, agent: Agent, signer: Signer, reason: str
) -> None:
    assert ask(gateway, signer.headers()).status_code == 200

    ENDED[reason](agent)

    status, _, found = refusal(ask(gateway, signer.headers()))
    assert (status, found) == (403, reason)


def test_agent_without_a_certificate_is_refused(gateway: Gateway, tenant: Tenant) -> None:
    signer = registered(make_agent(tenant))

    assert refusal(ask(gateway, signer.headers())) == (403, "Agent has no certificate", "agent_not_certified")


def test_agent_of_another_tenant_passes_where_the_route_says_so(gateway: Gateway, tenant: Tenant) -> None:
    signer = registered(make_permitted_agent(make_tenant()))
    route = make_route(tenant, credentials=["httpsig"], agents="any")

    assert refusal(ask(gateway, signer.headers()))[2] == "foreign_agent"
    gateway.route = route.name
    assert ask(gateway, signer.headers()).status_code == 200


def test_action_outside_the_scope_is_a_proven_violation(
    gateway: Gateway, agent: Agent, signer: Signer
) -> None:
    gateway.action = "delete"

    assert refusal(ask(gateway, signer.headers()))[2] == "scope_violation"
    (event,) = BehaviorEvent.objects.filter(agent_id=agent.id)
    assert (event.details["credential"], event.details["identity"]) == ("httpsig", "proven")


def test_refused_signature_leaves_no_way_by_the_serial_number(
    gateway: Gateway, agent: Agent, signer: Signer
) -> None:
    answer = ask(
        gateway, signer.headers(), **{**forwarded("POST"), "X-Service-Cert-Serial": serial_of(agent)}
    )

    assert refusal(answer)[2] == "invalid_signature"


def test_route_takes_signatures_only_if_it_says_so(gateway: Gateway, tenant: Tenant, signer: Signer) -> None:
    gateway.route = make_route(tenant, credentials=["bearer", "dpop"]).name

    assert refusal(ask(gateway, signer.headers()))[2] == "credential_missing"
    gateway.route = make_route(tenant, credentials=["httpsig"]).name
    assert ask(gateway, signer.headers()).status_code == 200
    challenge = gateway.ask()["WWW-Authenticate"]
    assert challenge == 'Signature realm="gateway"'


def test_nonce_of_the_service_is_demanded_where_the_route_says_so(
    gateway: Gateway, tenant: Tenant, signer: Signer
) -> None:
    route = make_route(tenant, credentials=["dpop", "httpsig"], nonce_required=True)
    gateway.route = route.name

    lacking = ask(gateway, signer.headers())
    nonce = proofs.current_nonce(now=now())
    carried = ask(gateway, signer.headers(nonce=nonce))

    assert refusal(lacking)[2] == "signature_nonce"
    assert lacking["Accept-Signature"].endswith(f';nonce="{nonce}"')
    assert carried.status_code == 200


def test_nothing_passes_while_replays_cannot_be_seen(
    gateway: Gateway, signer: Signer, redis_is_down: None
) -> None:
    answer = ask(gateway, signer.headers())

    assert (answer.status_code, "X-Service-Gateway-Decision" in answer) == (503, False)


def test_verified_root_and_signatures_contradict_each_other(tenant: Tenant, gateway: Gateway) -> None:
    with pytest.raises(Exception, match="httpsig"):
        make_route(tenant, credentials=["httpsig"], root="verified")
    assert not GatewayRoute.objects.exists()


def test_without_the_forwarded_request_the_gateway_is_at_fault(gateway: Gateway, signer: Signer) -> None:
    answer = gateway.ask(**signer.headers())

    assert (answer.status_code, "X-Service-Gateway-Decision" in answer) == (400, False)


@pytest.mark.parametrize(
    "host", ["api.example/orders/7?", "api.example/", "api.example?", "api.example#x", "a b"]
)
def test_host_cannot_bring_a_path_of_its_own(gateway: Gateway, signer: Signer, host: str) -> None:
    told = {"X-Forwarded-Host": host, "X-Forwarded-Uri": "/admin"}

    assert ask(gateway, signer.headers(), **told).status_code == 400


def test_envoy_tells_of_the_query_too(gateway: Gateway, signer: Signer) -> None:
    covered = ("@method", "@target-uri", '"signature-agent";key="sig1"')
    url = "https://testserver/orders/7?x=1"
    sent = {"X-Forwarded-Proto": "https", "Host": "testserver"}

    same = gateway.ask(f"{PATH}/orders/7?x=1", **sent, **signer.headers(url=url, covered=covered))
    other = gateway.ask(f"{PATH}/orders/7?x=2", **sent, **signer.headers(url=url, covered=covered))

    assert same.status_code == 200, same.content
    assert refusal(other)[2] == "invalid_signature"
