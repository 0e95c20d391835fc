"""Status lists: whether a token was revoked, without asking about it (draft-ietf-oauth-status-list §8)."""

import zlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import ec

from agentid import jose
from agentid.errors import NotValid, Reason
from agentid.jose import b64url_decode, claim
from agentid.verify.tokens import VerifiedToken

KIND: Final = "statuslist+jwt"
MAX_LIST: Final = 1 << 22  # octets of a list, unpacked
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
    claims = jose.signed_claims(status_list, kind=KIND, keys=keys, max_length=MAX_TEXT)
    if claims.get("iss") != issuer:
        raise NotValid(Reason.INVALID_ISSUER)
    if token.status_uri is None or token.status_index is None or claims.get("sub") != token.status_uri:
        raise NotValid(Reason.NOT_COVERED, "a list of other tokens")
    if type(claims.get("exp")) is not int or now.timestamp() >= claims["exp"]:
        raise NotValid(Reason.STALE, "the list's time is over")
    octets, index = _unpacked(claim(claims, "status_list", dict)), token.status_index
    if not 0 <= index < len(octets) * 8:
        raise NotValid(Reason.NOT_COVERED, "no such place in the list")
    if octets[index // 8] >> index % 8 & 1:
        raise NotValid(Reason.REVOKED)


def _unpacked(status_list: Mapping[str, Any]) -> bytes:
    if status_list.get("bits") != 1:
        raise NotValid(Reason.MALFORMED, "not a status list of one bit")
    unpacking = zlib.decompressobj()
    try:
        octets = unpacking.decompress(b64url_decode(claim(status_list, "lst", str)), MAX_LIST)
    except zlib.error:
        raise NotValid(Reason.MALFORMED, "not compressed with DEFLATE") from None
    if not unpacking.eof:
        raise NotValid(Reason.MALFORMED, "cut off, or too long")
    return octets
