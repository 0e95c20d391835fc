"""JSON Web Signatures by agents' keys: detached ones of messages (RFC 7797), and those of agent cards.

The service writes every protected header, so no caller's text is signed as one. A message's payload is signed
unencoded and a card's in base64url: neither signature verifies as the other's, whatever a verifier makes of
`typ`.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

import rfc8785

from compliance.core.encodings import b64url_decode, b64url_encode

ALGORITHM: Final = "RS256"
MESSAGE_TYPE: Final = "agent-message+jws"
CARD_TYPE: Final = "JOSE"
"""What A2A 1.0 §8.4.2 asks for."""
MAX_LENGTH: Final = 4_096


@dataclass(frozen=True)
class DetachedJws:
    """A parsed detached JWS; nothing in it is to be trusted yet."""

    protected: str
    kid: str
    audience: str | None
    signature: bytes


def message_header(kid: str, *, certificate_sha256: bytes, audience: str | None) -> str:
    """The protected header of a message, in base64url; it names key and certificate (RFC 7515 §4.1.8)."""
    header: dict[str, Any] = {
        "alg": ALGORITHM,
        "b64": False,
        "crit": ["b64"],
        "kid": kid,
        "typ": MESSAGE_TYPE,
        "x5t#S256": b64url_encode(certificate_sha256),
    }
    if audience is not None:
        header["aud"] = audience
    return b64url_encode(rfc8785.dumps(header))


def message_input(protected: str, payload: bytes) -> bytes:
    """The octets that are signed of a message, its payload unencoded (RFC 7797 §3)."""
    return protected.encode("ascii") + b"." + payload


def card_header(kid: str) -> str:
    """The protected header of a card's signature, in base64url."""
    return b64url_encode(rfc8785.dumps({"alg": ALGORITHM, "kid": kid, "typ": CARD_TYPE}))


def card_input(protected: str, payload: bytes) -> bytes:
    """The octets that are signed of a card (RFC 7515 §5.1)."""
    return f"{protected}.{b64url_encode(payload)}".encode("ascii")


def detached(protected: str, signature: bytes) -> str:
    """The compact serialization without the payload (RFC 7515, appendix F)."""
    return f"{protected}..{b64url_encode(signature)}"


def parse_detached(text: str) -> DetachedJws:
    """Parse a detached JWS; raises ValueError if it is none, or has no `kid`."""
    segments = text.split(".")
    if len(text) > MAX_LENGTH or len(segments) != 3 or segments[1]:
        raise ValueError("not a detached JWS")
    try:
        header = json.loads(b64url_decode(segments[0]))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    kid, audience = (header.get("kid"), header.get("aud")) if isinstance(header, dict) else (None, None)
    if not isinstance(kid, str) or not isinstance(audience, str | None):
        raise ValueError("not the header of a message")  # noqa: TRY004  (callers catch ValueErrors)
    return DetachedJws(segments[0], kid, audience, b64url_decode(segments[2]))
