"""DPoP proofs (RFC 9449 §4.3): that who presents a token holds the key it is bound to."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit

from agentid import jose
from agentid.errors import NotValid, Reason
from agentid.jose import b64url_encode

KIND: Final = "dpop+jwt"
HEADER_NAMES: Final = frozenset({"typ", "alg", "jwk"})
MAX_PROOF: Final = 8192
DEFAULT_PORTS: Final = {"https": 443, "http": 80}


@dataclass(frozen=True)
class PresentedProof:
    """A proof with the request it came with.

    `is_new` is asked once with the proof's key and `jti`, and must refuse what it was asked before within
    `max_age` seconds; without it a replay goes unnoticed.
    """

    text: str = field(repr=False)
    method: str
    url: str
    nonce: str | None = None
    max_age: int = 60
    is_new: Callable[[str, str], bool] | None = field(default=None, repr=False)


def verify_proof(proof: PresentedProof, *, access_token: str | None, now: datetime) -> str:
    """Check a proof and return the thumbprint of its key. Raises: NotValid."""
    parsed = jose.parse(proof.text, kind=KIND, names=HEADER_NAMES, max_length=MAX_PROOF)
    key = jose.public_key(jose.claim(parsed.header, "jwk", dict))
    # The holder's own library signs, and need not choose the lower s.
    jose.check_signature(parsed, key, lower_s=False)
    claims = parsed.payload
    made_at: Any = claims.get("iat")
    name = jose.claim(claims, "jti", str)
    if type(made_at) not in (int, float) or not 1 <= len(name) <= 256:
        raise NotValid(Reason.MALFORMED, "iat or jti")
    if claims.get("htm") != proof.method or not _is_same(claims.get("htu"), proof.url):
        raise NotValid(Reason.WRONG_REQUEST, "the proof is for another method or address")
    if made_at > now.timestamp() + proof.max_age:
        raise NotValid(Reason.NOT_YET_VALID, "the proof is from the future")
    if made_at < now.timestamp() - proof.max_age:
        raise NotValid(Reason.EXPIRED, "the proof is too old")
    if proof.nonce is not None and claims.get("nonce") != proof.nonce:
        raise NotValid(Reason.WRONG_NONCE)
    if access_token is not None and claims.get("ath") != token_hash(access_token):
        raise NotValid(Reason.WRONG_TOKEN, "the proof is for another token")
    holder = jose.thumbprint(key)
    if proof.is_new is not None and not proof.is_new(holder, name):
        raise NotValid(Reason.EXPIRED, "the proof was used before")
    return holder


def token_hash(access_token: str) -> str:
    """`ath` (§4.2): the SHA-256 of the token."""
    return b64url_encode(sha256(access_token.encode()).digest())


def target(url: str) -> str:
    """`htu` (§4.2): the address without query and fragment, normalised (RFC 3986 §6.2.2, §6.2.3)."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port and parts.port != DEFAULT_PORTS.get(parts.scheme) else ""
    return f"{parts.scheme.lower()}://{host}{port}{parts.path or '/'}"


def _is_same(claimed: object, url: str) -> bool:
    try:
        return isinstance(claimed, str) and target(claimed) == target(url)
    except ValueError:
        return False
