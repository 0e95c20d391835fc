"""Strict parsing of compact JWS (RFC 7515 §3.1), the same for delegation tokens, DPoP proofs and ID tokens.

Parsers differ on duplicate JSON names, NaN and non-canonical base64url, so all of them are refused here. The
module of each kind of JWS decides which header members and claims it accepts.
"""

import json
from dataclasses import dataclass
from typing import Any

from compliance.core.encodings import b64url_decode


@dataclass(frozen=True)
class CompactJws:
    """The unverified parts of a compact JWS."""

    text: str
    header: dict[str, Any]
    payload: dict[str, Any]
    signature: bytes

    @property
    def signed(self) -> bytes:
        """The octets that the signature covers."""
        return self.text.rpartition(".")[0].encode("ascii")


def parse(text: str, *, max_length: int) -> CompactJws:
    """Parse a compact JWS of at most `max_length` characters whose header and payload are JSON objects.

    Raises: ValueError for any other text.
    """
    segments = text.split(".")
    if len(text) > max_length or len(segments) != 3:
        raise ValueError("not one compact JWS")
    header, payload = json_object(segments[0]), json_object(segments[1])
    return CompactJws(text, header, payload, b64url_decode(segments[2]))


def json_object(segment: str) -> dict[str, Any]:
    """Decode the JSON object in a base64url segment. Raises: ValueError for any other text."""
    try:
        value = json.loads(
            b64url_decode(segment).decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse
        )
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004  (callers catch ValueErrors)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose names are unique (RFC 7515 §4): parsers differ on which of two to use."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate name")
    return found


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
