"""Writing DER (X.690): the few forms that lists and OCSP answers are made of, and their signatures."""

from datetime import UTC, datetime
from typing import Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed

from certificates.x509 import PrivateKey

INTEGER: Final = 0x02
BIT_STRING: Final = 0x03
OCTET_STRING: Final = 0x04
OBJECT_IDENTIFIER: Final = 0x06
ENUMERATED: Final = 0x0A
UTC_TIME: Final = 0x17
GENERALIZED_TIME: Final = 0x18
SEQUENCE: Final = 0x30
EXPLICIT_0: Final = 0xA0
EXPLICIT_1: Final = 0xA1
EXPLICIT_2: Final = 0xA2

TRUE: Final = bytes.fromhex("0101ff")
NULL: Final = bytes.fromhex("0500")
NO_UNUSED_BITS: Final = b"\0"
"""What a BIT STRING of whole octets begins with."""
FIRST_GENERALIZED: Final = datetime(2050, 1, 1, tzinfo=UTC).timestamp()
"""RFC 5280 §5.1.2.4: UTCTime through the year 2049, GeneralizedTime from then on."""


def header(tag: int, length: int) -> bytes:
    """Tag and length of what follows."""
    if length < 0x80:
        return bytes((tag, length))
    octets = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(octets))) + octets


def tlv(tag: int, *contents: bytes) -> bytes:
    """Tag, length and contents."""
    body = b"".join(contents)
    return header(tag, len(body)) + body


def integer(value: int) -> bytes:
    """A whole number that is not negative."""
    return tlv(INTEGER, value.to_bytes((value.bit_length() >> 3) + 1, "big"))


def enumerated(value: int) -> bytes:
    """One of a few named numbers, below 128."""
    return tlv(ENUMERATED, bytes((value,)))


def moment(when: datetime) -> bytes:
    """A time as certificates and lists have it, in whole seconds, what lies below them cut off."""
    if when.timestamp() < FIRST_GENERALIZED:
        return tlv(UTC_TIME, f"{when.astimezone(UTC):%y%m%d%H%M%SZ}".encode())
    return generalized_time(when)


def generalized_time(when: datetime) -> bytes:
    """A time with all digits of its year, in whole seconds, what lies below them cut off."""
    return tlv(GENERALIZED_TIME, f"{when.astimezone(UTC):%Y%m%d%H%M%SZ}".encode())


def oid(dotted: str) -> bytes:
    """An object identifier."""
    first, second, *rest = map(int, dotted.split("."))
    octets = bytearray()
    for arc in (first * 40 + second, *rest):
        group = [arc & 0x7F]
        while arc := arc >> 7:
            group.append(0x80 | (arc & 0x7F))
        octets += bytes(reversed(group))
    return tlv(OBJECT_IDENTIFIER, bytes(octets))


RSA_SHA256: Final = tlv(SEQUENCE, oid("1.2.840.113549.1.1.11"), NULL)
ECDSA_SHA256: Final = tlv(SEQUENCE, oid("1.2.840.10045.4.3.2"))
"""Algorithm identifiers of signatures (RFC 4055, RFC 5758)."""


def algorithm_of(key: PrivateKey) -> bytes:
    """What `signature_of()` signs with."""
    return RSA_SHA256 if isinstance(key, rsa.RSAPrivateKey) else ECDSA_SHA256


def signature_of(key: PrivateKey, digest: bytes) -> bytes:
    """The key's signature of octets with this SHA-256; raises what the key raises."""
    prehashed = Prehashed(hashes.SHA256())
    if isinstance(key, rsa.RSAPrivateKey):
        return tlv(BIT_STRING, NO_UNUSED_BITS, key.sign(digest, padding.PKCS1v15(), prehashed))
    return tlv(BIT_STRING, NO_UNUSED_BITS, key.sign(digest, ec.ECDSA(prehashed)))
