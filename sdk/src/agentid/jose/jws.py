"""Compact JWS with ES256 and nothing else; no header brings a key that counts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from agentid.jose.encodings import b64url_decode, read_object
from agentid.reasons import NotValid, Reason

ALGORITHM: Final = "ES256"
SIGNATURE_OCTETS: Final = 64
P256_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
MAX_LENGTH: Final = 65_536


@dataclass(frozen=True)
class Jws:
    """A parsed text; nothing in it is to be trusted before `check_signature`."""

    header: Mapping[str, Any]
    payload: Mapping[str, Any]
    signed: bytes
    signature: bytes


def parse(text: str, *, kind: str, names: frozenset[str], max_length: int = MAX_LENGTH) -> Jws:
    """Parse a JWS whose header has exactly these names, and `typ` this kind.

    Raises: NotValid (malformed, unsupported_algorithm).
    """
    segments = text.split(".")
    if len(text) > max_length or len(segments) != 3 or not text.isascii():
        raise NotValid(Reason.MALFORMED, "not a compact JWS")
    header, payload = (read_object(b64url_decode(segment)) for segment in segments[:2])
    signature = b64url_decode(segments[2])
    if header.get("alg") != ALGORITHM:
        raise NotValid(Reason.UNSUPPORTED_ALGORITHM, "only ES256 is accepted")
    if set(header) != names or header["typ"] != kind:
        raise NotValid(Reason.MALFORMED, f"the header is not that of a {kind}")
    return Jws(header, payload, text.rpartition(".")[0].encode(), signature)


def check_signature(jws: Jws, key: ec.EllipticCurvePublicKey, *, lower_s: bool = True) -> None:
    """Raise NotValid (invalid_signature) unless the key made it, by default with the lower *s*."""
    half = SIGNATURE_OCTETS // 2
    r, s = (int.from_bytes(part) for part in (jws.signature[:half], jws.signature[half:]))
    if len(jws.signature) != SIGNATURE_OCTETS or (lower_s and s > P256_ORDER // 2):
        raise NotValid(Reason.INVALID_SIGNATURE)
    try:
        key.verify(encode_dss_signature(r, s), jws.signed, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        raise NotValid(Reason.INVALID_SIGNATURE) from None
