"""Reading signatures: the draft's vectors, and what is refused of a message."""

from datetime import UTC, datetime, timedelta
from typing import Any

import http_sf
import pytest

from delegation.agent_keys.errors import SignatureFault, SignatureRejected
from delegation.agent_keys.message_signatures import (
    RequestSignature,
    SignedRequest,
    is_offered,
    parsed,
    read,
    signature_of,
)
from delegation.agent_keys.tests.signers import COVERED, URL, Signer
from delegation.jose.holder_keys import EDDSA, holder_key

MOMENT = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
SIGNER = Signer()
DIGEST = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"
TEST_KEY = {"kty": "OKP", "crv": "Ed25519", "x": "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"}
_PARAMS = (
    ';created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires={};'
    'nonce="{}";tag="web-bot-auth"'
)
# draft-ietf-webbotauth-httpsig-protocol, "EdDSA Using Curve edwards25519", with the key of RFC 9421 B.1.4.
VECTORS = {
    "dictionary": {
        "signature-agent": 'agent2="https://signature-agent.test"',
        "signature-input": 'sig2=("@authority" "signature-agent";key="agent2")'
        + _PARAMS.format(
            4889289600,
            "n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==",
        ),
        "signature": "sig2=:RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdh"
        "EwYCCg==:",
    },
    "legacy text": {
        "signature-agent": '"https://signature-agent.test"',
        "signature-input": 'sig2=("@authority" "signature-agent")'
        + _PARAMS.format(
            1735693200,
            "e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg==",
        ),
        "signature": "sig2=:jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp"
        "3rLWBA==:",
    },
}


def vector(name: str, authority: str) -> RequestSignature:
    """A signature of the draft, which is old and covers too little for a gateway."""
    return signature_of(
        SignedRequest("GET", f"https://{authority}/path", VECTORS[name]), *parsed(VECTORS[name])
    )


@pytest.mark.parametrize("name", VECTORS)
def test_vectors_of_the_draft_verify(name: str) -> None:
    found = vector(name, "example.com")

    assert found.checked(holder_key(TEST_KEY, algorithm=EDDSA)).jkt == found.keyid


@pytest.mark.parametrize("name", VECTORS)
def test_vectors_do_not_verify_for_another_authority(name: str) -> None:
    found = vector(name, "example.org")

    with pytest.raises(SignatureRejected):
        found.checked(holder_key(TEST_KEY, algorithm=EDDSA))


def signed(**options: Any) -> dict[str, str]:
    found = SIGNER.headers(**{"at": MOMENT, **options})
    return {name.lower(): value for name, value in found.items()}


def fault(headers: dict[str, str], *, method: str = "GET", uri: str = URL) -> SignatureFault | None:
    try:
        read(SignedRequest(method, uri, headers), now=MOMENT).checked(
            holder_key(SIGNER.holder.jwk, algorithm=EDDSA)
        )
    except SignatureRejected as rejected:
        return rejected.fault
    return None


@pytest.mark.parametrize(
    "covered",
    [
        COVERED,
        ("@method", "@target-uri", '"signature-agent";key="sig1"'),
        ("@method", "@authority", "@path", "signature-agent"),
        (*COVERED, "@query", "@scheme", "@request-target", "content-digest"),
    ],
)
def test_signature_of_the_library_is_taken(covered: tuple[str, ...]) -> None:
    assert fault(signed(covered=covered, sent={"Content-Digest": DIGEST})) is None


@pytest.mark.parametrize(
    ("uri", "url"),
    [
        ("https://API.example:443/orders/7?x=1", URL),
        ("http://api.example:80/", "http://api.example/"),
        ("https://api.example:8443/a", "https://api.example:8443/a"),
    ],
)
def test_authority_is_compared_without_case_and_usual_port(uri: str, url: str) -> None:
    assert fault(signed(url=url), uri=uri) is None


MISFIT = {
    "method": {"method": "POST"},
    "path": {"uri": "https://api.example/orders/8?x=1"},
    "authority": {"uri": "https://other.example/orders/7?x=1"},
    "port": {"uri": "https://api.example:8443/orders/7?x=1"},
}


@pytest.mark.parametrize("name", MISFIT)
def test_signature_of_another_request_is_invalid(name: str) -> None:
    assert fault(signed(), **MISFIT[name]) is SignatureFault.INVALID


def test_covered_field_that_was_changed_makes_the_signature_invalid() -> None:
    headers = signed(covered=(*COVERED, "content-digest"), sent={"Content-Digest": DIGEST})

    assert fault({**headers, "content-digest": DIGEST.replace("47", "48")}) is SignatureFault.INVALID
    del headers["content-digest"]
    assert fault(headers) is SignatureFault.COMPONENTS


@pytest.mark.parametrize(
    "covered",
    [
        ("@authority", '"signature-agent";key="sig1"'),
        ("@method", "@authority", '"signature-agent";key="sig1"'),
        ("@method", "@path", '"signature-agent";key="sig1"'),
        ("@method", "@authority", "@path"),
        ("@method", "@authority", "@path", '"@query-param";name="x"', '"signature-agent";key="sig1"'),
        (*COVERED, '"accept";sf'),
    ],
)
def test_signature_that_covers_too_little_or_what_is_not_supported_is_refused(
    covered: tuple[str, ...],
) -> None:
    assert fault(signed(covered=covered, sent={"Accept": "a"})) is SignatureFault.COMPONENTS


def test_member_of_a_field_that_is_covered_must_be_in_it() -> None:
    headers = {**signed(), "signature-agent": 'sig2="https://agents.example"'}

    assert fault(headers) is SignatureFault.COMPONENTS


TIMES: dict[str, dict[str, Any]] = {
    "made too long ago": {"at": MOMENT - timedelta(seconds=61)},
    "made in the future": {"at": MOMENT + timedelta(seconds=61)},
    "expired": {"at": MOMENT - timedelta(seconds=30), "life": timedelta(seconds=30)},
    "valid for longer than a day": {"life": timedelta(days=1, seconds=1)},
}


@pytest.mark.parametrize("name", TIMES)
def test_signature_counts_for_a_minute_after_it_was_made(name: str) -> None:
    assert fault(signed(**TIMES[name])) is SignatureFault.TIMES


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (";created=1795165200", ""),
        (";expires=1795165260", ""),
        (";created=1795165200", ";created=1795165200.5"),
        (";created=1795165200", ';created="1795165200"'),
        (";created=1795165200", ";created"),
        (";created=1795165200", ";created=999999999999999"),
    ],
)
def test_times_must_be_seconds(old: str, new: str) -> None:
    headers = signed()
    assert old in headers["signature-input"]
    headers["signature-input"] = headers["signature-input"].replace(old, new)

    assert fault(headers) is SignatureFault.TIMES


@pytest.mark.parametrize("algorithm", ["hmac-sha256", "rsa-pss-sha512", "ecdsa-p256-sha256", "none", ""])
def test_other_algorithms_are_refused(algorithm: str) -> None:
    headers = signed()
    headers["signature-input"] = headers["signature-input"].replace('"ed25519"', f'"{algorithm}"')

    assert fault(headers) is SignatureFault.MALFORMED


def test_parameter_that_was_changed_makes_the_signature_invalid() -> None:
    headers = signed()
    headers["signature-input"] = headers["signature-input"].replace(
        "expires=1795165260", "expires=1795165261"
    )

    assert fault(headers) is SignatureFault.INVALID


def twice(headers: dict[str, str]) -> dict[str, str]:
    """The same signature under two labels."""
    both = {
        name: f"{headers[name]}, {headers[name].replace('sig1=', 'sig2=', 1)}"
        for name in ("signature", "signature-input")
    }
    return {**headers, **both}


def test_two_signatures_of_agents_are_refused() -> None:
    assert fault(twice(signed())) is SignatureFault.MALFORMED


def test_signature_for_another_use_beside_it_is_ignored() -> None:
    headers = signed()
    headers["signature-input"] += ', proxy=("@method");created=1;tag="other"'
    headers["signature"] += ", proxy=:AAAA:"

    assert fault(headers) is None


MALFORMED = {
    "no signature": {"signature": ""},
    "of another label": {"signature": "sig2=:AAAA:"},
    "not octets": {"signature": 'sig1="AAAA"'},
    "not a dictionary": {"signature": ":AAAA:"},
    "not ASCII": {"signature": "sig1=:é:"},
    "one label twice": {"signature": "sig1=:AAAA:, sig1=:AAAA:"},
    "not a list of components": {"signature-input": 'sig1=1;tag="web-bot-auth"'},
    "components that are no texts": {"signature-input": 'sig1=(a b);tag="web-bot-auth"'},
    "unfinished": {"signature-input": 'sig1=("@method";tag="web-bot-auth"'},
    "long": {"signature-input": f'sig1=("{"a" * 9_000}");tag="web-bot-auth"'},
    "another tag": {"signature-input": 'sig1=("@method");tag="other"'},
}


@pytest.mark.parametrize("name", MALFORMED)
def test_headers_that_cannot_be_read_are_refused(name: str) -> None:
    assert fault({**signed(), **MALFORMED[name]}) is SignatureFault.MALFORMED


@pytest.mark.parametrize("keyid", ["", "short", "é" * 43, "a" * 44])
def test_keyid_must_be_a_thumbprint(keyid: str) -> None:
    headers = signed()
    headers["signature-input"] = headers["signature-input"].replace(SIGNER.holder.jkt, keyid)

    assert fault(headers) is SignatureFault.MALFORMED


def test_request_without_the_tag_offers_no_signature() -> None:
    assert is_offered(signed())
    assert not is_offered({})
    assert not is_offered({"signature-input": 'sig1=("@method");tag="other"'})


def test_field_is_parsed_once_for_all_of_its_members(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []
    parse = http_sf.parse

    def noted(octets: bytes, **options: Any) -> Any:
        parsed.append(octets)
        return parse(octets, **options)

    monkeypatch.setattr(http_sf, "parse", noted)
    members = [f'"x";key="k{n}"' for n in range(20)]
    value = ", ".join(f"k{n}={n}" for n in range(20))

    headers = {
        "signature-agent": 'sig1="https://a.example"',
        "signature-input": f'sig1=("@method" "@target-uri" "signature-agent" {" ".join(members)})'
        + f";created={int(MOMENT.timestamp())};expires={int(MOMENT.timestamp()) + 60}"
        + f';keyid="{SIGNER.holder.jkt}";tag="web-bot-auth"',
        "signature": f"sig1=:{'A' * 86}==:",
        "x": value,
    }

    assert fault(headers) is SignatureFault.INVALID
    assert parsed.count(value.encode()) == 1
