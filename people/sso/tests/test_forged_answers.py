"""What a hostile or broken provider, or somebody in its name, answers: refused, audited, never a 500."""

import base64
import hashlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from compliance.core.clock import now
from compliance.tests.console import make_staff
from people.sso import identities, provider
from people.sso.tests import toolkit
from people.sso.tests.forging import EC_KEY, OTHER_KEY, RSA_KEY, SUBJECT, Forger, public, signed
from people.sso.tests.providers import begin, follow, parameters_of
from people.sso.tests.test_signing_on import of_type, who
from people.tests.authenticators import ACTOR


@pytest.fixture(autouse=True)
def kim(forger: Forger) -> User:
    user = make_staff("kim")
    identities.link(user=user, issuer=forger.issuer, subject=SUBJECT, via="tests", actor=ACTOR, now=now())
    return user


def refusals() -> list[str]:
    return [(entry.metadata or {})["reason"] for entry in of_type("person.sign_in_failed")]


def segment(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_right_token_signs_in(forger: Forger, client: Client) -> None:
    answer = forger.sign_in(client)

    (asked,) = forger.asked
    assert (answer.status_code, who(client)) == (302, "kim")
    assert asked["grant_type"] == "authorization_code"
    assert asked["redirect_uri"] == f"{settings.BASE_URL}/admin/live/login/sso/callback/"
    digest = hashlib.sha256(asked["code_verifier"].encode()).digest()
    assert len(base64.urlsafe_b64encode(digest)) == 44


def test_elliptic_key_signs_in(forger: Forger, client: Client) -> None:
    asked = parameters_of(begin(client))
    token = signed(forger.claims(asked["nonce"]), key=EC_KEY, algorithm="ES256")
    forger.answer = {"id_token": token}

    forger.call_back(client, asked)

    assert who(client) == "kim"


def test_audience_of_several_with_us_as_the_authorized_party(forger: Forger, client: Client) -> None:
    forger.sign_in(client, aud=[toolkit.CLIENT_ID, "another"], azp=toolkit.CLIENT_ID)

    assert who(client) == "kim"


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"nonce": "of another sign-in"}, "claim_nonce"),
        ({"nonce": None}, "claim_nonce"),
        ({"aud": "another client"}, "claim_aud"),
        ({"aud": ["another client"]}, "claim_aud"),
        ({"aud": None}, "claim_aud"),
        ({"aud": {}}, "claim_aud"),
        ({"aud": [toolkit.CLIENT_ID, "another"]}, "claim_azp"),
        ({"aud": [toolkit.CLIENT_ID, "another"], "azp": "another"}, "claim_azp"),
        ({"azp": "another"}, "claim_azp"),
        ({"iss": "https://evil.example"}, "claim_iss"),
        ({"iss": None}, "claim_iss"),
        ({"exp": 1}, "claim_exp"),
        ({"exp": None}, "claim_exp"),
        ({"exp": "never"}, "claim_exp"),
        ({"nbf": 4_000_000_000}, "claim_nbf"),
        ({"iat": 4_000_000_000}, "claim_iat"),
        ({"iat": None}, "claim_iat"),
        ({"sub": None}, "claim_sub"),
        ({"sub": ""}, "claim_sub"),
        ({"sub": "x" * 256}, "claim_sub"),
        ({"sub": "nul\x00"}, "claim_sub"),
        ({"sub": "k\u0456m"}, "claim_sub"),
        ({"sub": 248289761001}, "claim_sub"),
        ({"at_hash": "of another token"}, "claims"),
    ],
)
def test_wrong_claim_is_refused(forger: Forger, client: Client, claims: dict[str, Any], reason: str) -> None:
    answer = forger.sign_in(client, **claims)

    assert (answer.status_code, who(client)) == (403, None)
    assert refusals() == [reason]
    assert reason in answer.content.decode()


def unsigned(claims: dict[str, Any]) -> str:
    return f"{segment({'alg': 'none', 'kid': 'rsa'})}.{segment(claims)}."


def by_public_key(claims: dict[str, Any]) -> str:
    """HS256 with what everyone knows as the secret (CVE-2016-5431 and many more)."""
    pem = RSA_KEY.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    said = f"{segment({'alg': 'HS256', 'kid': 'rsa'})}.{segment(claims)}"
    mac = hmac.new(pem, said.encode(), hashlib.sha256).digest()
    return f"{said}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def by_client_secret(claims: dict[str, Any]) -> str:
    return jwt.encode(claims, toolkit.CLIENT_SECRET.ljust(32, "x"), "HS256", headers={"kid": "rsa"})


def with_own_key(claims: dict[str, Any]) -> str:
    header: dict[str, Any] = {"jwk": public(OTHER_KEY, "rsa"), "jku": "https://evil.example/keys"}
    return signed(claims, key=OTHER_KEY, **header)


def tampered(claims: dict[str, Any]) -> str:
    header, _, signature = signed({**claims, "sub": "nobody"}).split(".")
    return f"{header}.{segment(claims)}.{signature}"


@pytest.mark.parametrize(
    ("forge", "reason"),
    [
        (unsigned, "algorithm"),
        (by_public_key, "algorithm"),
        (by_client_secret, "algorithm"),
        (with_own_key, "signature"),
        (tampered, "signature"),
        (lambda claims: signed(claims, key=OTHER_KEY), "signature"),
        (lambda claims: signed(claims, algorithm="RS512"), "algorithm"),
        (lambda claims: signed(claims, algorithm="PS256"), "algorithm"),
        (lambda claims: signed(claims, kid="unheard of"), "unknown_key"),
        (lambda claims: signed(claims, kid="ec"), "unknown_key"),
        (lambda claims: signed(claims, crit=["exp"], exp=1), "malformed_token"),
        (lambda claims: signed(claims) + "x", "malformed_token"),
        (lambda claims: "no token", "malformed_token"),
        (lambda claims: "", "malformed_token"),
        (lambda claims: "x" * 70_000, "no_id_token"),
        (lambda claims: None, "no_id_token"),
        (lambda claims: ["x"], "no_id_token"),
        (lambda claims: signed(claims)[:40], "malformed_token"),
    ],
)
def test_forged_token_is_refused(
    forger: Forger, client: Client, forge: Callable[[dict[str, Any]], Any], reason: str
) -> None:
    asked = parameters_of(begin(client))
    forger.answer = {"id_token": forge(forger.claims(asked["nonce"]))}

    answer = forger.call_back(client, asked)

    assert (answer.status_code, who(client)) == (403, None)
    assert refusals() == [reason]


def test_symmetric_key_among_the_published_is_no_key(forger: Forger, client: Client, settings: Any) -> None:
    settings.OIDC_ALGORITHMS = ["RS256", "HS256"]
    secret = b"s" * 32
    forger.keys = [{"kty": "oct", "kid": "oct", "k": base64.urlsafe_b64encode(secret).decode()}]
    asked = parameters_of(begin(client))
    forger.answer = {"id_token": jwt.encode(forger.claims(asked["nonce"]), secret, "HS256", {"kid": "oct"})}

    forger.call_back(client, asked)

    assert (who(client), refusals()) == (None, ["algorithm"])


def test_short_key_is_refused(forger: Forger, client: Client) -> None:
    short = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505  (on purpose)
    forger.keys = [public(short, "rsa")]
    asked = parameters_of(begin(client))
    with pytest.warns(jwt.warnings.InsecureKeyLengthWarning):
        forger.answer = {"id_token": signed(forger.claims(asked["nonce"]), key=short)}

    forger.call_back(client, asked)

    assert (who(client), refusals()) == (None, ["weak_key"])


@pytest.mark.parametrize("more", [{"use": "enc"}, {"alg": "RS512"}, {"n": "AQAB"}, {"e": 5}])
def test_key_for_something_else_is_not_used(forger: Forger, client: Client, more: dict[str, Any]) -> None:
    forger.keys = [public(RSA_KEY, "rsa", **more)]

    assert forger.sign_in(client).status_code == 403


def test_token_without_a_key_id_needs_one_key(forger: Forger, client: Client) -> None:
    for keys, expected in (([RSA_KEY, OTHER_KEY], None), ([RSA_KEY], "kim")):
        provider._key_sets.clear()
        forger.keys = [public(key, f"key {number}") for number, key in enumerate(keys)]
        asked = parameters_of(begin(client))
        forger.answer = {"id_token": signed(forger.claims(asked["nonce"]), kid=None)}
        forger.call_back(client, asked)

        assert who(client) == expected


def test_rotated_key_is_fetched_and_unknown_ones_not_again_and_again(forger: Forger, client: Client) -> None:
    forger.sign_in(client)
    client.post(reverse("account_logout"))
    forger.keys = [public(OTHER_KEY, "next")]
    asked = parameters_of(begin(client))
    forger.answer = {"id_token": signed(forger.claims(asked["nonce"]), key=OTHER_KEY, kid="next")}
    forger.call_back(client, asked)
    signed_in = who(client)
    client.post(reverse("account_logout"))

    for number in range(3):
        asked = parameters_of(begin(client))
        forger.answer = {"id_token": signed(forger.claims(asked["nonce"]), kid=f"unknown {number}")}
        forger.call_back(client, asked)

    assert signed_in == "kim"
    assert forger.key_requests == 2
    assert refusals() == ["unknown_key"] * 3


@pytest.mark.parametrize(
    "parameters",
    [{"state": "guess"}, {"state": None}, {"state": "%00"}, {"state": "%ed%a0%80"}, {"state": "x" * 3000}],
)
def test_wrong_state_is_refused_and_ends_nothing(
    forger: Forger, client: Client, parameters: dict[str, Any]
) -> None:
    asked = parameters_of(begin(client))
    forger.answer = {"id_token": signed(forger.claims(asked["nonce"]))}

    wrong = forger.call_back(client, asked, **parameters)

    assert (wrong.status_code, refusals(), forger.asked) == (403, ["state"], [])
    assert forger.call_back(client, asked).status_code == 302


def test_state_given_twice_is_none(forger: Forger, client: Client) -> None:
    asked = parameters_of(begin(client))

    answer = forger.call_back(client, asked, code=f"x&state={asked['state']}")

    assert answer.status_code == 403


def test_late_answer_is_refused(forger: Forger, client: Client, time_machine: Any) -> None:
    asked = parameters_of(begin(client))
    forger.answer = {"id_token": signed(forger.claims(asked["nonce"]))}
    time_machine.move_to(now() + timedelta(minutes=11))

    forger.call_back(client, asked)

    assert refusals() == ["too_late"]


@pytest.mark.parametrize(
    ("promised", "parameters", "reason"),
    [
        (False, {"iss": "https://evil.example"}, "issuer"),
        (True, {}, "issuer"),
        (True, {"iss": ""}, "issuer"),
        (False, {"iss": "https://evil.example", "error": "access_denied"}, "issuer"),
        (False, {"error": "access_denied"}, "provider_access_denied"),
        (False, {"error": "%3Cscript%3E"}, "provider_error"),
        (False, {"error": "x" * 300}, "provider_error"),
        (False, {"code": None}, "no_code"),
        (False, {"code": ""}, "no_code"),
        (False, {"code": "%00"}, "no_code"),
        (False, {"code": "x" * 5000}, "no_code"),
    ],
)
def test_answer_in_the_address_is_checked(
    forger: Forger, client: Client, parameters: dict[str, Any], reason: str, *, promised: bool
) -> None:
    forger.document["authorization_response_iss_parameter_supported"] = promised

    answer = forger.sign_in(client, parameters=parameters)

    assert (answer.status_code, who(client), refusals()) == (403, None, [reason])
    assert forger.asked == []
    assert b"<script>" not in answer.content


def test_issuer_in_the_address_may_be_the_right_one(forger: Forger, client: Client) -> None:
    forger.document["authorization_response_iss_parameter_supported"] = True

    forger.sign_in(client, parameters={"iss": forger.issuer})

    assert who(client) == "kim"


def test_issuer_changed_meanwhile_is_refused(forger: Forger, client: Client, settings: Any) -> None:
    asked = parameters_of(begin(client))
    with Forger.serving() as other:
        settings.OIDC_ISSUER = other.issuer
        answer = follow(client, f"{asked['redirect_uri']}?code=x&state={asked['state']}")

    assert (answer.status_code, refusals()) == (403, ["issuer"])


@pytest.mark.parametrize(
    "changed",
    [
        {"issuer": "https://evil.example"},
        {"issuer": None},
        {"authorization_endpoint": None},
        {"authorization_endpoint": "http://evil.example/authorize"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"token_endpoint": "http://evil.example/token"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": "http://[bad"},
        {"token_endpoint": 1},
        {"token_endpoint_auth_methods_supported": ["private_key_jwt"]},
        {"token_endpoint_auth_methods_supported": None},
    ],
)
def test_document_that_cannot_be_used_is_a_503(
    forger: Forger, client: Client, changed: dict[str, Any]
) -> None:
    forger.document.update(changed)

    answer: Any = client.post(reverse("admin:sso_begin"))

    assert answer.status_code == 503


def test_secret_goes_in_the_form_where_the_provider_wants_it(forger: Forger, client: Client) -> None:
    forger.document["token_endpoint_auth_methods_supported"] = ["client_secret_post"]

    forger.sign_in(client)

    assert forger.asked[0]["client_secret"] == toolkit.CLIENT_SECRET
    assert forger.asked[0]["authorization"] is None


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, b"not JSON", 503),
        (200, b"[]", 503),
        (200, b"[" * 100_000, 503),
        (200, b'{"id_token": "' + b"x" * 300_000 + b'"}', 503),
        (500, b"{}", 503),
        (302, b"{}", 403),
        (400, b'{"error": "invalid_grant"}', 403),
        (401, b"", 403),
    ],
)
def test_odd_answers_of_the_token_endpoint(
    forger: Forger, client: Client, status: int, body: bytes, expected: int
) -> None:
    asked = parameters_of(begin(client))
    forger.answer, forger.status = body, status

    answer = forger.call_back(client, asked)

    assert (answer.status_code, who(client)) == (expected, None)


@pytest.mark.parametrize("keys", [{}, "x", [1, None, {}], [{"kty": "RSA", "kid": "rsa"}], [{}] * 200])
def test_odd_keys_are_no_500(forger: Forger, client: Client, keys: Any) -> None:
    forger.keys = keys

    assert forger.sign_in(client).status_code in {403, 503}


@contextmanager
def dripping(piece: bytes, pause: float) -> Iterator[str]:
    """A server that says `piece` after `piece` and never ends; yield its address."""
    over = threading.Event()

    def serve(listening: socket.socket) -> None:
        while not over.is_set():
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                continue
            with connection:
                try:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{")
                    while not over.wait(pause):
                        connection.sendall(piece)
                except OSError:
                    pass

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.1)
        thread = threading.Thread(target=serve, args=[listening])
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        over.set()
        thread.join()


@pytest.mark.parametrize(("piece", "pause"), [(b" ", 0.05), (b" " * 65_536, 0.0), (b"", 0.05)])
def test_slow_and_huge_answers_are_cut_off(client: Client, settings: Any, piece: bytes, pause: float) -> None:
    settings.OIDC_TIMEOUT_SECONDS = 1.0
    with dripping(piece, pause) as address:
        settings.OIDC_ISSUER = address
        began = time.monotonic()
        answer: Any = client.post(reverse("admin:sso_begin"))
        took = time.monotonic() - began

    assert answer.status_code == 503
    # The server would go on for ever.
    assert took < 20


def test_provider_that_is_away_is_not_asked_by_everyone(client: Client, settings: Any) -> None:
    settings.OIDC_ISSUER = "http://127.0.0.1:9"

    pages: list[Any] = [client.post(reverse("admin:sso_begin")) for _ in range(3)]

    assert {page.status_code for page in pages} == {503}
    assert provider.circuit.is_open


def test_failures_of_an_address_close_it(forger: Forger, client: Client, settings: Any) -> None:
    settings.ACCOUNT_RATE_LIMITS = {"sign_on_failed": "2/h/ip"}
    for _ in range(2):
        forger.sign_in(client, aud="another")

    answer = forger.sign_in(client)

    assert (answer.status_code, refusals()[-1]) == (403, "locked_out")
    assert who(client) is None


def test_forged_links_close_no_address(forger: Forger, client: Client, settings: Any) -> None:
    settings.ACCOUNT_RATE_LIMITS = {"sign_on_failed": "2/h/ip"}
    for _ in range(5):
        Client().get(reverse("admin:sso_callback"), {"code": "x", "state": "x"})

    forger.sign_in(client)

    assert who(client) == "kim"


def test_off_there_is_nothing(client: Client, settings: Any) -> None:
    settings.OIDC_ISSUER = ""

    pages: list[Any] = [client.post(reverse("admin:sso_begin")), client.get(reverse("admin:sso_callback"))]

    assert [page.status_code for page in pages] == [404, 404]
    assert b"Example ID" not in client.get(reverse("account_login")).content


def test_beginning_needs_a_csrf_token(forger: Forger) -> None:
    answer: Any = Client(enforce_csrf_checks=True).post(reverse("admin:sso_begin"))

    assert answer.status_code == 403
