"""Status lists: whether a token was revoked, without asking about it (draft-ietf-oauth-status-list §8)."""

import zlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import ec

from agentid.jose import jws
from agentid.jose.encodings import b64url_decode
from agentid.reasons import NotValid, Reason
from agentid.verify.tokens import VerifiedToken

KIND: Final = "statuslist+jwt"
HEADER_NAMES: Final = frozenset({"alg", "typ", "kid"})
MAX_LIST: Final = 1 << 22
"""Octets of a list, unpacked."""
MAX_TEXT: Final = 2 * MAX_LIST


def check_status(
    token: VerifiedToken,
    status_list: str,
    *,
    keys: Mapping[str, ec.EllipticCurvePublicKey],
    issuer: str,
    now: datetime,
) -> None:
    """Look a token up in the list that it names. Raises: NotValid, with `revoked` if it does not stand."""
    parsed = jws.parse(status_list, kind=KIND, names=HEADER_NAMES, max_length=MAX_TEXT)
    key = keys.get(str(parsed.header["kid"]))
    if key is None:
        raise NotValid(Reason.UNKNOWN_KEY)
    jws.check_signature(parsed, key)
    claims = parsed.payload
    if claims.get("iss") != issuer:
        raise NotValid(Reason.INVALID_ISSUER)
    if token.status_uri is None or token.status_index is None or claims.get("sub") != token.status_uri:
        raise NotValid(Reason.NOT_COVERED, "a list of other tokens")
    if type(claims.get("exp")) is not int or now.timestamp() >= claims["exp"]:
        raise NotValid(Reason.STALE, "the list's time is over")
    if _bit(_unpacked(claims.get("status_list")), token.status_index):
        raise NotValid(Reason.REVOKED)


def _unpacked(status_list: Any) -> bytes:
    packed = status_list.get("lst") if isinstance(status_list, dict) else None
    if not isinstance(packed, str) or status_list.get("bits") != 1:
        raise NotValid(Reason.MALFORMED, "not a status list of one bit")
    unpacking = zlib.decompressobj()
    try:
        octets = unpacking.decompress(b64url_decode(packed), MAX_LIST)
    except zlib.error:
        raise NotValid(Reason.MALFORMED, "not compressed with DEFLATE") from None
    if not unpacking.eof:
        raise NotValid(Reason.MALFORMED, "cut off, or too long")
    return octets


def _bit(octets: bytes, index: int) -> bool:
    if not 0 <= index < len(octets) * 8:
        raise NotValid(Reason.NOT_COVERED, "no such place in the list")
    return bool(octets[index // 8] >> index % 8 & 1)
