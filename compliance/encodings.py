"""Base64 and base64url with one spelling for each string of octets (RFC 4648 §3.5)."""

import base64
import binascii
import re
from typing import Final

_URL_SAFE: Final = re.compile(r"[A-Za-z0-9_-]*")


def b64_encode(octets: bytes) -> str:
    """Base64, padded (RFC 4648 §4)."""
    return base64.b64encode(octets).decode("ascii")


def b64_decode(text: str) -> bytes:
    """The octets that padded, canonical base64 spells; ValueError for anything else.

    Canonical: the unused bits of the last character are zero, so no two texts spell the same octets.
    """
    try:
        octets = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
    if b64_encode(octets) != text:
        raise ValueError("not canonical base64")
    return octets


def b64url_encode(octets: bytes) -> str:
    """base64url without padding (RFC 7515 §2)."""
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode("ascii")


def b64url_decode(text: str) -> bytes:
    """The octets that unpadded, canonical base64url spells; ValueError for anything else."""
    if not _URL_SAFE.fullmatch(text):
        raise ValueError("not base64url")
    try:
        octets = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as error:
        raise ValueError("not base64url") from error
    if b64url_encode(octets) != text:
        raise ValueError("not canonical base64url")
    return octets
