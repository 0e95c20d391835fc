"""DPoP proofs (RFC 9449): one signed statement for one request, by the key that a token is bound to.

This module checks a proof against its request, the token it came with and the time. `delegation.proofs` also
checks that the proof was not used before and that its nonce is one of the service's.
"""

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hmac import compare_digest
from typing import Any

from compliance.core.encodings import b64url_encode
from delegation.errors import ProofRejected
from delegation.jose import compact
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


MAX_URI_LENGTH = 2_048
DEFAULT_PORTS = {"http": "80", "https": "443"}
# A host in brackets or of unreserved characters and sub-delims, never of percent-encoded ones (an IDN comes
# as A-labels); no user information, since `@` is in none of the groups; characters of RFC 3986 only.
_PARTS = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._~!$&'()*+,;=-]+)(?::(?P<port>[0-9]{0,5}))?"
    r"(?P<path>(?:/(?:[a-z0-9._~!$&'()*+,;=:@/-]|%[0-9a-f]{2})*)?)"
    r"(?:\?(?:[a-z0-9._~!$&'()*+,;=:@/?-]|%[0-9a-f]{2})*)?"
    r"(?:#(?:[a-z0-9._~!$&'()*+,;=:@/?-]|%[0-9a-f]{2})*)?",
    re.IGNORECASE | re.ASCII,
)
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")


@dataclass(frozen=True)
class Proof:
    """A proof that holds; `jkt` is the thumbprint of its key, `nonce` unchecked."""

    jkt: str
    jti: str
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
    key, claims = _key(parsed.header), parsed.payload
    jti, made_for, target, nonce = (claims.get(name) for name in ("jti", "htm", "htu", "nonce"))
    if not isinstance(jti, str) or not 1 <= len(jti) <= MAX_ID_LENGTH:
        raise ProofRejected(f"jti must have 1 to {MAX_ID_LENGTH} characters")
    if not isinstance(made_for, str) or not isinstance(target, str):
        raise ProofRejected("htm and htu are required")
    if nonce is not None and (not isinstance(nonce, str) or len(nonce) > MAX_NONCE_LENGTH):
        raise ProofRejected(f"nonce must have at most {MAX_NONCE_LENGTH} characters")
    target, made_at = _uri_of_proof(target), _moment(claims.get("iat"))
    if made_for != method:
        raise ProofRejected("htm is not the method of this request")
    if target != _uri_of_proof(uri):
        raise ProofRejected("htu is not the URI of this request")
    if abs(made_at - now) > WINDOW:
        raise ProofRejected("iat is too far from the time of this service")
    if access_token is not None and not _is_hash(claims.get("ath"), access_token):
        raise ProofRejected("ath is not the hash of the presented token")
    if not key.signed(parsed.signed, parsed.signature):
        raise ProofRejected("the signature is not valid")
    return Proof(key.jkt, jti, nonce)


def token_hash(access_token: str) -> str:
    """The `ath` of a token (RFC 9449 §4.2)."""
    return b64url_encode(hashlib.sha256(access_token.encode("utf-8", "surrogatepass")).digest())


def _is_hash(stated: Any, access_token: str) -> bool:
    octets = stated.encode("utf-8", "surrogatepass") if isinstance(stated, str) else b""
    return compare_digest(octets, token_hash(access_token).encode())


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


def _uri_of_proof(uri: str) -> str:
    try:
        return normalised(uri)
    except ValueError as error:
        raise ProofRejected("htu is not an http or https URI") from error


def _moment(value: Any) -> datetime:
    """The time that `iat` gives in seconds, with or without a fraction (RFC 7519 §2)."""
    if type(value) not in (int, float):
        raise ProofRejected("iat must be a number of seconds")
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise ProofRejected("iat is too far from the time of this service") from error


@lru_cache(maxsize=1_024)
def normalised(uri: str) -> str:
    """The URI without query and fragment, normalised by syntax and scheme; ValueError for any other text.

    Scheme and host are in lower case, the scheme's port and dot segments left out, percent-encoding in upper
    case and only where needed, and an empty path is `/`. A trailing slash makes a difference.
    """
    parts = _PARTS.fullmatch(uri) if len(uri) <= MAX_URI_LENGTH else None
    if parts is None:
        raise ValueError("not an absolute http or https URI")
    scheme, host = parts["scheme"].lower(), parts["host"].lower()
    port = (parts["port"] or "").lstrip("0")
    shown = "" if port in ("", DEFAULT_PORTS[scheme]) else f":{port}"

    def spelt_once(found: re.Match[str]) -> str:
        character = chr(int(found[0][1:], 16))
        return character if _UNRESERVED.fullmatch(character) else found[0].upper()

    path = _without_dots(_ENCODED.sub(spelt_once, parts["path"]))
    return f"{scheme}://{host}{shown}{path}"


def _without_dots(path: str) -> str:
    """RFC 3986 §5.2.4, for a path that is empty or begins with a slash."""
    kept: list[str] = []
    segments = path.split("/")[1:] or [""]
    for segment in segments:
        if segment == "..":
            kept = kept[:-1]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)
