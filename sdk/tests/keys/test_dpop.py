"""Keys on disk, and their proofs."""

import json
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from agentid import ConfigurationError, jose
from agentid.jose import b64url_decode
from agentid.keys import DpopAuth, DpopKey
from agentid.verify import PresentedProof
from agentid.verify.proofs import target, verify_proof

URL = "https://api.example.com/prices"


def test_key_is_only_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    key = DpopKey.load_or_generate(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert DpopKey.load_or_generate(path).thumbprint == key.thumbprint
    assert [each.name for each in tmp_path.iterdir()] == ["key.pem"]
    assert "private" not in repr(key)
    with pytest.raises(FileExistsError):
        key.save(path)


def test_many_that_start_at_once_have_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: DpopKey.load_or_generate(tmp_path / "key.pem").thumbprint, range(16)))

    assert len({*found}) == 1


@pytest.mark.parametrize(
    "make", [lambda: ec.generate_private_key(ec.SECP384R1()), lambda: rsa.generate_private_key(65537, 2048)]
)
def test_other_keys_are_refused(tmp_path: Path, make: Callable[[], ec.EllipticCurvePrivateKey]) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(make().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    with pytest.raises(ConfigurationError):
        DpopKey.load(path)
    path.write_bytes(b"x")
    with pytest.raises(ConfigurationError):
        DpopKey.load(path)


def test_thumbprint_of_the_standard() -> None:
    """RFC 9449 §4.1 and §6.1: the key of the examples."""
    key = jose.public_key(
        {
            "kty": "EC",
            "x": "l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs",
            "y": "9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA",
            "crv": "P-256",
        }
    )

    assert jose.thumbprint(key) == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("HTTPS://API.example.com:443/prices?a=1#b", URL),
        ("https://api.example.com:8443", "https://api.example.com:8443/"),
        ("http://[::1]:80/x", "http://[::1]/x"),
    ],
)
def test_address_in_a_proof_is_normalised(url: str, wanted: str) -> None:
    assert target(url) == wanted


def test_proof_verifies(tmp_path: Path) -> None:
    key = DpopKey.generate()
    proof = PresentedProof(key.proof("GET", f"{URL}?page=2", access_token="t"), "GET", URL)

    assert verify_proof(proof, access_token="t", now=datetime.now(UTC)) == key.thumbprint


def test_time_of_a_proof_may_have_a_fraction() -> None:
    key, now = DpopKey.generate(), datetime.now(UTC)
    header = {"typ": "dpop+jwt", "jwk": jose.public_jwk(key.private_key.public_key())}
    claims = {"jti": "1", "htm": "GET", "htu": URL, "iat": now.timestamp() + 0.25}
    text = jwt.encode(claims, key.private_key, "ES256", headers=header)

    assert verify_proof(PresentedProof(text, "GET", URL), access_token=None, now=now) == key.thumbprint


def test_nonce_is_sent_once_it_is_asked_for_and_then_kept() -> None:
    sent: list[str | None] = []

    def serve(request: httpx.Request) -> httpx.Response:
        claims = json.loads(b64url_decode(request.headers["DPoP"].split(".")[1]))
        assert request.headers["Authorization"] == "DPoP token"
        sent.append(claims.get("nonce"))
        if claims.get("nonce") != "n1":
            challenge = 'DPoP error="use_dpop_nonce"'
            return httpx.Response(401, headers={"DPoP-Nonce": "n1", "WWW-Authenticate": challenge})
        return httpx.Response(200)

    with httpx.Client(
        transport=httpx.MockTransport(serve), auth=DpopAuth(DpopKey.generate(), "token")
    ) as client:
        statuses = [client.get(URL).status_code for _ in range(2)]

    assert (statuses, sent) == ([200, 200], [None, "n1", "n1"])


def test_server_that_is_never_content_is_asked_twice() -> None:
    sent = []

    def serve(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        challenge = 'DPoP error="use_dpop_nonce"'
        return httpx.Response(401, headers={"DPoP-Nonce": str(len(sent)), "WWW-Authenticate": challenge})

    with httpx.Client(transport=httpx.MockTransport(serve), auth=DpopAuth(DpopKey.generate())) as client:
        assert client.get(URL).status_code == 401

    assert len(sent) == 2
