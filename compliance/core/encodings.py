"""Base64 and base64url with one spelling for each string of octets (RFC 4648 §3.5)."""

import base64


def b64_encode(octets: bytes) -> str:
    """Base64, padded (RFC 4648 §4)."""
    return base64.b64encode(octets).decode()


def b64_decode(text: str) -> bytes:
    """The octets that padded, canonical base64 spells; ValueError for anything else."""
    octets = base64.b64decode(text)
    # The decoder skips foreign characters and ignores surplus bits: neither survives the way back.
    if b64_encode(octets) != text:
        raise ValueError("not canonical base64")
    return octets


def b64url_encode(octets: bytes) -> str:
    """base64url without padding (RFC 7515 §2)."""
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def b64url_decode(text: str) -> bytes:
    """The octets that unpadded, canonical base64url spells; ValueError for anything else."""
    octets = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if b64url_encode(octets) != text:
        raise ValueError("not canonical base64url")
    return octets
