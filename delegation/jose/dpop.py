"""DPoP proofs (RFC 9449): one signed statement for one request, by the key that a token is bound to.

This module checks a proof against its request, the token it came with and the time. `delegation.proofs` also
checks that the proof was not used before and that its nonce is one of the service's.
"""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hmac import compare_digest
from typing import Any

from compliance.core.encodings import b64url_encode
from delegation.errors import ProofRejected
from delegation.jose import compact, http_uris
from delegation.jose.holder_keys import ALGORITHMS, HolderKey, holder_key

TYPE = "dpop+jwt"
WINDOW = timedelta(seconds=60)
"""How far `iat` may be from the time of the check, either way."""
MAX_LENGTH = 4_096
"""Characters of a proof: several times what one has with either algorithm, the hash and a nonce."""
MAX_ID_LENGTH = 256
MAX_NONCE_LENGTH = 256
REFUSED_NAMES = frozenset({"crit", "b64", "jku", "x5u", "x5c", "x5t", "x5t#S256"})
"""Header members that ask for extensions or name other keys than `jwk`."""


@dataclass(frozen=True)
class Proof:
    """A proof that holds; `jkt` is the thumbprint of its key, `uri` normalised, `nonce` unchecked."""

    jkt: str
    jti: str
    method: str
    uri: str
    issued_at: datetime
    nonce: str | None


def check(text: str, *, method: str, uri: str, access_token: str | None, now: datetime) -> Proof:
    """The proof in `text`, if it was made for this request, within `WINDOW` of `now`.

    Query and fragment of `uri` are ignored. The hash of `access_token` must be in the proof; without a
    token the request presents none. Raises: ProofRejected.
    """
    try:
        parsed = compact.parse(text, max_length=MAX_LENGTH)
    except ValueError as error:
        raise ProofRejected("the proof is not one compact JWS") from error
    key = _key(parsed.header)
    proof = _proof(parsed.payload, key.jkt)
    _check_request(proof, method, uri)
    if abs(proof.issued_at - now) > WINDOW:
        raise ProofRejected("iat is too far from the time of this service")
    if access_token is not None:
        _check_hash(parsed.payload.get("ath"), access_token)
    if not key.signed(parsed.signed, parsed.signature):
        raise ProofRejected("the signature is not valid")
    return proof


def token_hash(access_token: str) -> str:
    """The `ath` of a token (RFC 9449 §4.2)."""
    return b64url_encode(hashlib.sha256(access_token.encode("utf-8", "surrogatepass")).digest())


def _key(header: dict[str, Any]) -> HolderKey:
    if header.get("typ") != TYPE:
        raise ProofRejected(f"typ is not {TYPE}")
    if not REFUSED_NAMES.isdisjoint(header):
        raise ProofRejected("the header has a member that is not accepted")
    algorithm, jwk = header.get("alg"), header.get("jwk")
    if algorithm not in ALGORITHMS:
        raise ProofRejected(f"alg is none of {' '.join(ALGORITHMS)}")
    try:
        if isinstance(jwk, dict):
            return holder_key(jwk, algorithm=algorithm)
    except ValueError as error:
        raise ProofRejected("jwk is not a public key of this alg") from error
    raise ProofRejected("jwk is missing")


def _proof(claims: dict[str, Any], jkt: str) -> Proof:
    jti, method, uri, nonce = (claims.get(name) for name in ("jti", "htm", "htu", "nonce"))
    if not isinstance(jti, str) or not 1 <= len(jti) <= MAX_ID_LENGTH:
        raise ProofRejected(f"jti must have 1 to {MAX_ID_LENGTH} characters")
    if not isinstance(method, str) or not isinstance(uri, str):
        raise ProofRejected("htm and htu are required")
    if nonce is not None and (not isinstance(nonce, str) or len(nonce) > MAX_NONCE_LENGTH):
        raise ProofRejected(f"nonce must have at most {MAX_NONCE_LENGTH} characters")
    return Proof(jkt, jti, method, _normalised(uri), _moment(claims.get("iat")), nonce)


def _normalised(uri: str) -> str:
    try:
        return http_uris.normalised(uri)
    except ValueError as error:
        raise ProofRejected("htu is not an http or https URI") from error


def _moment(value: Any) -> datetime:
    """The time that `iat` gives in whole seconds; its digits are bounded before they are a number."""
    if type(value) is not int:
        raise ProofRejected("iat must be a whole number of seconds")
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise ProofRejected("iat is too far from the time of this service") from error


def _check_request(proof: Proof, method: str, uri: str) -> None:
    if proof.method != method:
        raise ProofRejected("htm is not the method of this request")
    if proof.uri != _normalised(uri):
        raise ProofRejected("htu is not the URI of this request")


def _check_hash(value: Any, access_token: str) -> None:
    if not isinstance(value, str) or not compare_digest(
        value.encode("utf-8", "surrogatepass"), token_hash(access_token).encode()
    ):
        raise ProofRejected("ath is not the hash of the presented token")
