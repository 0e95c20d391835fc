"""The question and the answer, without I/O."""

from dataclasses import replace

import pytest

from agentid.middleware.gate import AgentIdentity, Gate, GateAnswer, Inbound, interpret, is_identity

SERVICE = "https://id.example.com"
ASKED = Inbound(
    method="POST",
    scheme="http",
    host="api.internal",
    path="/orders/1",
    target="/orders/1?a=%20b",
    headers=[
        ("host", "api.internal"),
        ("authorization", "DPoP token"),
        ("dpop", "proof"),
        ("dpop", "second proof"),
        ("x-service-cert-serial", "ab"),
        ("x-service-approval", "receipt"),
        ("x-service-agent-id", "forged"),
        ("x-service-action", "read"),
        ("x-service-gateway-key", "forged"),
        ("x-forwarded-host", "elsewhere"),
        ("cookie", "session=secret"),
    ],
)
TOLD = {
    "X-Service-Gateway-Decision": "allow",
    "X-Service-Agent-Id": "0193d2a4-7b5e-7cc3-98c4-dc0c0c07398f",
    "X-Service-Tenant-Id": "0193d2a4-0000-7cc3-98c4-dc0c0c07398f",
    "X-Service-Principal": "reader%2C%20agent%3Dadmin",
    "X-Service-Chain": "human=anna%20b,agent=reader%2C%20agent%3Dadmin",
    "X-Service-Scope": "read write",
    "X-Service-Action": "read",
    "X-Service-Risk-Band": "low",
    "X-Service-Cert-Serial": "",
    "X-Service-Environment": "live",
    "X-Service-Assurance": "asserted",
    "X-Service-Credential": "dpop",
}


def answer(status: int, headers: dict[str, str], body: bytes = b"") -> AgentIdentity | GateAnswer:
    return interpret(status=status, headers=list(headers.items()), body=body)


def test_question_takes_the_credentials_from_the_client_and_nothing_else() -> None:
    asked = Gate(SERVICE, "key", route="orders", action="write").question(ASKED)

    assert sorted((name.decode(), value.decode()) for name, value in asked) == [
        ("X-Forwarded-Host", "api.internal"),
        ("X-Forwarded-Method", "POST"),
        ("X-Forwarded-Proto", "http"),
        ("X-Forwarded-Uri", "/orders/1?a=%20b"),
        ("X-Service-Action", "write"),
        ("X-Service-Gateway-Key", "key"),
        ("X-Service-Gateway-Route", "orders"),
        ("authorization", "DPoP token"),
        ("dpop", "proof"),
        ("dpop", "second proof"),
        ("x-service-approval", "receipt"),
        ("x-service-cert-serial", "ab"),
    ]


def test_action_may_follow_from_the_request_and_the_address_from_the_policy() -> None:
    gate = Gate(
        SERVICE, "key", action=lambda asked: asked.method.lower(), public_url="https://api.example.com/"
    )

    asked = gate.question(replace(ASKED, headers=[]))

    assert {name.decode(): value.decode() for name, value in asked} == {
        "X-Forwarded-Host": "api.example.com",
        "X-Forwarded-Method": "POST",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Uri": "/orders/1?a=%20b",
        "X-Service-Action": "post",
        "X-Service-Gateway-Key": "key",
    }
    assert "key" not in repr(Gate(SERVICE, "key"))


def test_identity_is_read_with_its_names_decoded() -> None:
    found = answer(200, TOLD)

    assert isinstance(found, AgentIdentity)
    assert found.principal == "reader, agent=admin"
    assert found.chain == (("human", "anna b"), ("agent", "reader, agent=admin"))
    assert (found.scope, found.cert_serial, found.credential) == (("read", "write"), None, "dpop")


@pytest.mark.parametrize("missing", sorted(set(TOLD) - {"X-Service-Cert-Serial"}))
def test_incomplete_yes_is_no(missing: str) -> None:
    found = answer(200, {name: value for name, value in TOLD.items() if name != missing})

    assert isinstance(found, GateAnswer)
    assert found.status == 503


@pytest.mark.parametrize("status", [401, 403])
def test_refusal_of_the_client_is_passed_on(status: int) -> None:
    told = {
        "X-Service-Gateway-Decision": "deny",
        "WWW-Authenticate": 'DPoP realm="gateway", error="invalid_token"',
        "DPoP-Nonce": "n",
        "Set-Cookie": "a=b",
    }

    found = answer(status, told, b'{"error": "Scope violation"}')

    assert found == GateAnswer(
        status,
        {"error": "Scope violation"},
        [("www-authenticate", told["WWW-Authenticate"]), ("dpop-nonce", "n")],
    )


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (200, {}),
        (200, {**TOLD, "X-Service-Gateway-Decision": "deny"}),
        (201, TOLD),
        (204, TOLD),
        (302, {**TOLD, "Location": "/"}),
        (401, {"WWW-Authenticate": "Bearer"}),
        (403, {}),
        (404, {}),
        (429, {}),
        (500, {}),
        (503, {}),
    ],
)
def test_anything_else_fails_closed(status: int, headers: dict[str, str]) -> None:
    found = answer(status, headers, b"<h1>")

    assert isinstance(found, GateAnswer)
    assert found.status == 503
    assert found.headers == [("retry-after", "1")]


def test_retry_after_of_the_service_is_handed_on() -> None:
    found = answer(429, {"Retry-After": "17"})

    assert isinstance(found, GateAnswer)
    assert found.headers == [("retry-after", "17")]


@pytest.mark.parametrize(
    "name", ["X-Service-Agent-Id", "x_service_agent_id", "X_Service-Chain", "X-SERVICE-NEW"]
)
def test_whatever_could_pass_for_the_service_is_stripped(name: str) -> None:
    assert is_identity(name)
    assert not is_identity("X-Server")
