"""DER (X.690) for what is encoded often: CRL entries and CRLs, with their signatures."""

from datetime import UTC, datetime
from typing import Final

from asn1crypto.algos import SignedDigestAlgorithm
from asn1crypto.core import ObjectIdentifier
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed

BIT_STRING: Final = 0x03
OCTET_STRING: Final = 0x04
UTC_TIME: Final = 0x17
GENERALIZED_TIME: Final = 0x18
SEQUENCE: Final = 0x30
EXPLICIT_0: Final = 0xA0

TRUE: Final = bytes.fromhex("0101ff")
NO_UNUSED_BITS: Final = b"\0"
FIRST_GENERALIZED: Final = datetime(2050, 1, 1, tzinfo=UTC).timestamp()
"""RFC 5280 §5.1.2.4: UTCTime through the year 2049, GeneralizedTime from then on."""
RSA_SHA256: Final[bytes] = SignedDigestAlgorithm({"algorithm": "sha256_rsa"}).dump()
"""The signature algorithm's identifier (RFC 4055)."""


def header(tag: int, length: int) -> bytes:
    if length < 0x80:
        return bytes((tag, length))
    octets = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(octets))) + octets


def tlv(tag: int, *contents: bytes) -> bytes:
    return b"".join((header(tag, sum(map(len, contents))), *contents))


def pkix_time(moment: datetime) -> bytes:
    """Encode a Time of a certificate or CRL, cut to whole seconds."""
    if moment.timestamp() < FIRST_GENERALIZED:
        return tlv(UTC_TIME, f"{moment.astimezone(UTC):%y%m%d%H%M%SZ}".encode())
    return tlv(GENERALIZED_TIME, f"{moment.astimezone(UTC):%Y%m%d%H%M%SZ}".encode())


def signature_of(key: rsa.RSAPrivateKey, digest: bytes) -> bytes:
    """Sign a SHA-256 digest by `RSA_SHA256`, as a BIT STRING; raises what the key raises."""
    signature = key.sign(digest, padding.PKCS1v15(), Prehashed(hashes.SHA256()))
    return tlv(BIT_STRING, NO_UNUSED_BITS, signature)


def extension(value: x509.ExtensionType, *, critical: bool = False) -> bytes:
    """Encode an extension (RFC 5280 §4.1)."""
    return tlv(
        SEQUENCE,
        ObjectIdentifier(value.oid.dotted_string).dump(),
        TRUE if critical else b"",
        tlv(OCTET_STRING, value.public_bytes()),
    )
