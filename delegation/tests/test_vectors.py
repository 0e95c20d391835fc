"""Vectors of others: Wycheproof's for ES256, RFC 9449's proofs, RFC 8037's key and signature."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from compliance.core.encodings import b64url_decode
from delegation.errors import ProofRejected, TokenRejected
from delegation.jose import compact, dpop, jws
from delegation.jose.compact import CompactJws
from delegation.jose.dpop import Proof
from delegation.jose.holder_keys import holder_key, thumbprint
from delegation.tests.factories import JKT

FILE = Path(__file__).parent / "vectors" / "wycheproof_es256.json"
VECTORS = [
    pytest.param(group["key"], one["jws"], one["result"] == "valid", id=f"{one['tcId']}-{one['comment']}")
    for group in json.loads(FILE.read_text())["groups"]
    for one in group["tests"]
]


def holder_verifies(jwk: dict[str, Any], text: str) -> bool:
    """Return whether a signature holds as that of a proof would, under a key given beside it."""
    try:
        header, payload, signature = text.split(".")
        key = holder_key(jwk, algorithm=compact.json_object(header)["alg"])
        return key.signed(f"{header}.{payload}".encode(), b64url_decode(signature))
    except ValueError:
        return False


def service_verifies(jwk: dict[str, Any], text: str) -> bool:
    """Return whether a signature holds as that of a token would; the vectors' payload is no JSON object."""
    key = holder_key(jwk, algorithm="ES256").key
    assert isinstance(key, ec.EllipticCurvePublicKey)
    try:
        header, _, signature = text.split(".")
        jws.verify(CompactJws(text, compact.json_object(header), {}, b64url_decode(signature)), key)
    except (ValueError, TokenRejected):
        return False
    return True


@pytest.mark.parametrize(("jwk", "text", "is_valid"), VECTORS)
def test_wycheproof_signature_of_a_holder(jwk: dict[str, Any], text: str, is_valid: bool) -> None:
    assert holder_verifies(jwk, text) is is_valid


@pytest.mark.parametrize(("jwk", "text", "is_valid"), [one for one in VECTORS if "356" not in str(one.id)])
def test_wycheproof_signature_of_the_service(jwk: dict[str, Any], text: str, is_valid: bool) -> None:
    """Of a signature and its twin with the negative s, only the lower s counts."""
    assert service_verifies(jwk, text) is (is_valid and text.endswith("yoiQ"))


HEADER = (
    "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXp"
    "Da0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydi"
    "I6IlAtMjU2In19"
)
TOKEN_REQUEST = (
    f"{HEADER}.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29t"
    "L3Rva2VuIiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-F"
    "NyJK70nfbV37xRZT3Lg"
)
REFRESH_REQUEST = (
    f"{HEADER}.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29t"
    "L3Rva2VuIiwiaWF0IjoxNTYyMjY1Mjk2fQ.pAqut2IRDm_De6PR93SYmGBPXpwrAk90e8cP2hjiaG5QsGSuKDYW7_X620BxqhvYC8y"
    "nrrvZLTk41mSRroapUA"
)
RESOURCE_REQUEST = (
    f"{HEADER}.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9y"
    "Zy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUl"
    "pS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLj"
    "A"
)
TOKEN_URI, RESOURCE_URI = "https://server.example.com/token", "https://resource.example.org/protectedresource"
ACCESS_TOKEN = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"


def rfc_proof(
    text: str, *, after: int = 0, iat: int, method: str, uri: str, token: str | None = None
) -> Proof:
    """The check of an RFC 9449 proof, so many seconds after the time in it."""
    moment = datetime.fromtimestamp(iat, UTC) + timedelta(seconds=after)
    return dpop.check(text, method=method, uri=uri, access_token=token, now=moment)


@pytest.mark.parametrize(("text", "iat"), [(TOKEN_REQUEST, 1562262616), (REFRESH_REQUEST, 1562265296)])
def test_proofs_of_rfc_9449_for_tokens(text: str, iat: int) -> None:
    proof = rfc_proof(text, iat=iat, method="POST", uri=TOKEN_URI)

    assert (proof.jkt, proof.jti) == (JKT, "-BwC3ESc6acc2lTc")
    with pytest.raises(ProofRejected, match="iat"):
        rfc_proof(text, after=61, iat=iat, method="POST", uri=TOKEN_URI)


def test_proof_of_rfc_9449_for_a_resource() -> None:
    asked: dict[str, Any] = {"iat": 1562262618, "method": "GET", "uri": RESOURCE_URI}

    assert rfc_proof(RESOURCE_REQUEST, **asked, token=ACCESS_TOKEN).jkt == JKT
    with pytest.raises(ProofRejected, match="ath"):
        rfc_proof(RESOURCE_REQUEST, **asked, token=ACCESS_TOKEN[:-1])


def test_thumbprints_of_rfc_7638_and_rfc_8037() -> None:
    modulus = (
        "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiF"
        "V4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9"
        "c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1"
        "jF44-csFCur-kEgU8awapJzKnqDKgw"
    )
    rsa = {"kty": "RSA", "n": modulus, "e": "AQAB", "alg": "RS256", "kid": "2011-04-29"}

    assert thumbprint(rsa) == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
    assert thumbprint(ED25519) == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


ED25519 = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}


def test_signature_of_rfc_8037() -> None:
    text = (
        "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWb"
        "hijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
    )

    assert holder_verifies(ED25519, text)
    assert not holder_verifies(ED25519, text.replace("hgyY", "hgyZ"))
