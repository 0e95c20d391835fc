"""What anyone may ask is answered alike to everyone: credentials and cookies sent along have no say."""

import base64
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp

from agents.tests.factories import make_agent
from auditlog.tests.factories import make_entries, seal_and_sign
from certificates.public import messages
from certificates.tests.factories import make_carded_agent, make_certificate, revoke_certificate
from compliance.api.rest.views import ApiViewSet
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tests.client import ApiClient
from compliance.tests.url_table import api_routes
from delegation.issued import status_lists
from delegation.issuing.issuance import IssuedDelegation
from delegation.tests.factories import make_token, make_token_key
from delegation.token_keys import keyring
from tenancy import keys
from tenancy.tests.factories import make_key, make_tenant

PAYLOAD = {"order": 17}
ISSUER_PATH = "/issuer"


class Ask(NamedTuple):
    """One request; `path` is that of the route, with the arguments put in."""

    route: str
    method: str
    path: str
    body: Any = None


@pytest.fixture
def asks(settings: Any) -> dict[Environment, list[Ask]]:
    """Every public request, of things of both environments."""
    settings.TOKEN_ISSUER = f"{settings.BASE_URL}{ISSUER_PATH}"
    keyring.forget()
    status_lists.forget()
    found = {}
    for environment in Environment:
        with environments.use(environment):
            found[environment] = list(asked())
    return found


def asked() -> Iterator[Ask]:
    """What anyone may ask of one environment's certificates (in force and revoked), CA, token and agent."""
    tenant = make_tenant()
    make_token_key()
    carded = make_carded_agent(tenant)
    yield Ask("v1/agent-cards/<str:did>", "GET", f"v1/agent-cards/{carded.did}")
    active = make_certificate(make_agent(tenant))
    revoked = revoke_certificate(make_certificate(make_agent(tenant)))
    environment = environments.current().value
    for certificate in (active, revoked):
        serial = certificate.serial_number
        question = base64.b64encode(ocsp_question(certificate)).decode()
        yield Ask("v1/verify/<str:serial>", "GET", f"v1/verify/{serial}")
        yield Ask("v1/ocsp", "POST", "v1/ocsp", ocsp_question(certificate))
        yield Ask("v1/ocsp/", "POST", "v1/ocsp/", ocsp_question(certificate))
        yield Ask("v1/ocsp/<path:encoded>", "GET", f"v1/ocsp/{quote(question, safe='')}")
        yield Ask("1.0/identifiers/<str:did>", "GET", f"1.0/identifiers/{certificate.agent.did}")
        if certificate is active:
            signed = messages.sign_message(certificate=certificate, payload=PAYLOAD).signature
        message = {"payload": PAYLOAD, "signature": signed, "certificate_serial": serial}
        yield Ask("v1/verify/message", "POST", "v1/verify/message", message)
        yield Ask("v1/verify/message", "POST", "v1/verify/message", {**message, "payload": {}})
    yield Ask(
        "v1/key-directories/<str:tenant_id>",
        "GET",
        f"v1/key-directories/{tenant.id}?environment={environment}",
    )
    authority = active.authority.serial_number
    yield Ask("v1/crl", "GET", f"v1/crl?environment={environment}")
    yield Ask("v1/crl/<str:serial>", "GET", f"v1/crl/{authority}")
    yield Ask("v1/crl/<str:serial>/<str:part>", "GET", f"v1/crl/{authority}/0")
    yield Ask("v1/ca", "GET", f"v1/ca?environment={environment}")
    yield Ask("v1/ca/<str:serial>", "GET", f"v1/ca/{authority}")
    yield Ask(".well-known/jwks.json", "GET", f".well-known/jwks.json?environment={environment}")
    configuration = ".well-known/ssf-configuration"
    yield Ask(configuration, "GET", f"{configuration}?environment={environment}")
    issued = make_token(active.agent)
    yield Ask("v1/delegation/verify", "POST", "v1/delegation/verify", {"token": issued.token})
    yield Ask("v1/status-lists/<str:list_id>", "GET", f"v1/status-lists/{list_of(issued)}")
    make_entries(256)
    seal_and_sign()
    tree = "v1/audit-log" if environment == "live" else "v1/audit-log/test"
    for end in ("checkpoint", "status", "keys", "consistency"):
        yield Ask(f"{tree}/{end}", "GET", f"{tree}/{end}")
    yield Ask(f"{tree}/tile/<str:level>/<path:path>", "GET", f"{tree}/tile/0/000")
    metadata = ".well-known/oauth-authorization-server"
    yield Ask(f"{metadata}/<path:path>", "GET", f"{metadata}{ISSUER_PATH}")
    for bare in (
        metadata,
        ".well-known/authzen-configuration",
        "v1/crl",
        "v1/ca",
        ".well-known/jwks.json",
        ".well-known/ssf-configuration",
        "v1/schema",
        "verify",
        "health/live",
        "health/ready",
    ):
        yield Ask(bare, "GET", bare)


def list_of(issued: IssuedDelegation) -> str:
    """The id of the status list that a token names."""
    assert issued.delegation.status is not None
    return issued.delegation.status.status_list.uri.rpartition("/")[2]


def ocsp_question(certificate: Any) -> bytes:
    leaf = x509.load_pem_x509_certificate(certificate.certificate_pem.encode())
    issuer = x509.load_der_x509_certificate(bytes(certificate.authority.certificate_der))
    builder = ocsp.OCSPRequestBuilder().add_certificate(leaf, issuer, hashes.SHA256())
    return builder.build().public_bytes(Encoding.DER)


def send(api: ApiClient, ask: Ask, headers: dict[str, str]) -> Any:
    if isinstance(ask.body, bytes):
        return api._client.generic(
            ask.method, f"/{ask.path}", ask.body, "application/ocsp-request", headers=headers
        )
    return api._send(ask.method, f"/{ask.path}", ask.body, headers)


def seen(answer: Any) -> tuple[int, bytes, set[str]]:
    """Status, body and the names of the headers; of OCSP, signed anew each time, its status."""
    body = answer.content
    if answer["Content-Type"] == "application/ocsp-response":
        body = str(ocsp.load_der_ocsp_response(body).response_status).encode()
    return answer.status_code, body, {name for name in answer.headers if name != "Set-Cookie"}


def tree_of(route: str) -> Environment | None:
    """The environment whose tree of audit entries the route serves."""
    if not route.startswith("v1/audit-log/"):
        return None
    return Environment.TEST if route.startswith("v1/audit-log/test/") else Environment.LIVE


def test_every_public_route_is_asked(asks: dict[Environment, list[Ask]]) -> None:
    public = {
        route for route, view in api_routes()
        if not issubclass(getattr(view, "cls", object), ApiViewSet) and not route.startswith("admin/")
    }  # fmt: skip

    # Who reads /metrics has a token of its own: compliance/observing/tests/test_metrics.py.
    public -= {"", "admin", "docs", "v1/docs", "metrics"}
    for environment in Environment:
        others = {route for route in public if tree_of(route) not in (None, environment)}
        assert public - others == {ask.route for ask in asks[environment]}


@pytest.mark.parametrize("environment", Environment)
def test_public_endpoints_ignore_credentials(
    api: ApiClient, asks: dict[Environment, list[Ask]], environment: Environment
) -> None:
    tenant = make_tenant()
    shown = {"garbage": "\x7f !", "basic": "Basic dXNlcjpwYXNz", "empty": "", "bearer": "Bearer "}
    for one in Environment:
        with environments.use(one):
            shown[one.value] = f"Bearer {make_key(tenant)}"
            shown[f"made-up {one.value}"] = f"Bearer {keys.new_secret(one)}"

    for ask in asks[environment]:
        plain = seen(send(api, ask, {}))
        assert plain[0] == 200, (ask, plain)
        for name, credentials in shown.items():
            assert seen(send(api, ask, {"Authorization": credentials})) == plain, (ask.path, name)
