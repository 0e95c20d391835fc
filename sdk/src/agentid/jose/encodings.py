"""Strict base64 and JSON: one text for one value, and no name twice."""

import base64
import binascii
import json
from typing import Any

from agentid.reasons import NotValid, Reason


def b64url_encode(octets: bytes) -> str:
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def b64url_decode(text: str) -> bytes:
    """Decode unpadded base64url in its canonical form. Raises: NotValid (malformed)."""
    try:
        octets = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise NotValid(Reason.MALFORMED, "not base64url") from None
    if b64url_encode(octets) != text:
        raise NotValid(Reason.MALFORMED, "not canonical base64url")
    return octets


def b64_decode(text: str) -> bytes:
    """Decode padded base64 in its canonical form. Raises: NotValid (malformed)."""
    try:
        octets = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise NotValid(Reason.MALFORMED, "not base64") from None
    if base64.b64encode(octets).decode() != text:
        raise NotValid(Reason.MALFORMED, "not canonical base64")
    return octets


def read_json(text: bytes | str) -> Any:
    """Read JSON without duplicate names, NaN or infinities. Raises: NotValid (malformed)."""
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        return json.loads(decoded, object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise NotValid(Reason.MALFORMED, "not JSON, or a name twice in one object") from None


def read_object(text: bytes | str) -> dict[str, Any]:
    """Read a JSON object. Raises: NotValid (malformed)."""
    value = read_json(text)
    if not isinstance(value, dict):
        raise NotValid(Reason.MALFORMED, "not a JSON object")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate name")
    return found


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
