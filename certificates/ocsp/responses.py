"""OCSP messages (RFC 6960, nonces as in RFC 9654) as pure functions: requests read, responses written."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from asn1crypto import ocsp as asn1
from asn1crypto import x509 as asn1_x509
from asn1crypto.core import ObjectIdentifier, OctetString
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from certificates.pki.der import (
    EXPLICIT_0,
    EXPLICIT_1,
    EXPLICIT_2,
    OCTET_STRING,
    SEQUENCE,
    algorithm_of,
    enumerated,
    generalized_time,
    signature_of,
    tlv,
)
from certificates.pki.reasons import REASON_NUMBERS
from certificates.pki.x509 import PrivateKey
from compliance.core.encodings import b64_decode

MAX_REQUEST: Final = 8 * 1024
MAX_CERTIFICATES: Final = 16
MAX_NONCE: Final = 128
HASHES: Final = ("sha1", "sha256", "sha384", "sha512")
"""Hashes by which a request may name its issuer. Most clients use SHA-1, where a collision gains nothing."""

SUCCESSFUL: Final = 0
MALFORMED: Final = 1
TRY_LATER: Final = 3
UNAUTHORIZED: Final = 6

BASIC: Final = ObjectIdentifier("1.3.6.1.5.5.7.48.1.1").dump()
NONCE: Final = ObjectIdentifier("1.3.6.1.5.5.7.48.1.2").dump()
GOOD: Final = bytes.fromhex("8000")
UNKNOWN: Final = bytes.fromhex("8200")

# What asn1crypto raises for octets that are something else.
_UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)


class MalformedRequest(Exception):
    """Not an OCSP request, or one beyond the limits."""


class IssuerHashes(NamedTuple):
    """The hashes of a CA's name and key by which a request names it (§4.1.1)."""

    name_hash: bytes
    key_hash: bytes

    @classmethod
    def of(cls, certificate: x509.Certificate, hash_name: str) -> "IssuerHashes":
        subject = certificate.subject.public_bytes()
        return cls(hashlib.new(hash_name, subject).digest(), _key_hash(certificate, hash_name))


class Responder(NamedTuple):
    """The certificate of an OCSP responder, and the SHA-1 of its key, by which responses name it."""

    certificate_der: bytes
    key_hash: bytes

    @classmethod
    def of(cls, certificate_der: bytes) -> "Responder":
        certificate = x509.load_der_x509_certificate(certificate_der)
        return cls(certificate_der, _key_hash(certificate, "sha1"))


@dataclass(frozen=True)
class CertId:
    """A certificate asked about; `der` is repeated in the response."""

    hash_name: str
    issuer: IssuerHashes
    serial: int
    der: bytes


@dataclass(frozen=True)
class OcspRequest:
    """A request about one or more certificates; the response repeats `nonce`."""

    certificates: tuple[CertId, ...]
    nonce: bytes | None


@dataclass(frozen=True)
class SingleResponse:
    """The status of one certificate: unknown, good, or revoked at a time for a reason."""

    certificate: CertId
    known: bool
    revoked_at: datetime | None = None
    reason: x509.ReasonFlags = x509.ReasonFlags.unspecified


def read_request(sent: bytes | str) -> OcspRequest:
    """Read a request in DER or a GET's base64 (RFC 6960 appendix A.1); raises `MalformedRequest`."""
    if len(sent) > (MAX_REQUEST if isinstance(sent, bytes) else MAX_REQUEST * 2):
        raise MalformedRequest("too long")
    try:
        der = sent if isinstance(sent, bytes) else b64_decode(sent)
        request = asn1.OCSPRequest.load(der, strict=True)["tbs_request"]
        found = [_cert_id(item) for item in request["request_list"]]
        nonce = _nonce(request["request_extensions"])
    except _UNREADABLE as error:
        raise MalformedRequest("not an OCSPRequest") from error
    if len(der) > MAX_REQUEST or not 1 <= len(found) <= MAX_CERTIFICATES:
        raise MalformedRequest("too long, or about no certificate or too many")
    return OcspRequest(tuple(found), nonce)


def error_response(status: int) -> bytes:
    """A response without certificate statuses, which is not signed (§4.2.1)."""
    return tlv(SEQUENCE, enumerated(status))


def signed_response(
    responses: Sequence[SingleResponse],
    *,
    nonce: bytes | None,
    this_update: datetime,
    next_update: datetime,
    responder: Responder,
    key: PrivateKey,
) -> bytes:
    """A signed response that carries the responder's certificate; times in whole seconds UTC."""
    times = generalized_time(this_update), tlv(EXPLICIT_0, generalized_time(next_update))
    data = tlv(
        SEQUENCE,
        tlv(EXPLICIT_2, tlv(OCTET_STRING, responder.key_hash)),
        times[0],
        tlv(SEQUENCE, *[tlv(SEQUENCE, one.certificate.der, _status(one), *times) for one in responses]),
        b"" if nonce is None else tlv(EXPLICIT_1, tlv(SEQUENCE, _nonce_extension(nonce))),
    )
    signature = signature_of(key, hashlib.sha256(data).digest())
    certificates = tlv(EXPLICIT_0, tlv(SEQUENCE, responder.certificate_der))
    basic = tlv(OCTET_STRING, tlv(SEQUENCE, data, algorithm_of(key), signature, certificates))
    return tlv(SEQUENCE, enumerated(SUCCESSFUL), tlv(EXPLICIT_0, tlv(SEQUENCE, BASIC, basic)))


def _cert_id(item: Any) -> CertId:
    for extension in item["single_request_extensions"] or ():
        if extension["critical"].native:
            raise ValueError("critical extension")
    found = item["req_cert"]
    hash_name = found["hash_algorithm"]["algorithm"].native
    if hash_name not in HASHES:
        raise ValueError("unknown hash")
    issuer = IssuerHashes(found["issuer_name_hash"].native, found["issuer_key_hash"].native)
    return CertId(hash_name, issuer, found["serial_number"].native, found.dump(force=True))


def _nonce(extensions: Any) -> bytes | None:
    """The nonce, of 1 to 128 octets (RFC 9654 §2.1); the only extension that may be critical."""
    nonce: bytes | None = None
    for extension in extensions or ():
        if extension["extn_id"].native == "nonce":
            nonce = OctetString.load(extension["extn_value"].contents, strict=True).native
            if not 1 <= len(nonce or b"") <= MAX_NONCE:
                raise ValueError("nonce of a wrong length")
        elif extension["critical"].native:
            raise ValueError("critical extension")
    return nonce


def _nonce_extension(nonce: bytes) -> bytes:
    return tlv(SEQUENCE, NONCE, tlv(OCTET_STRING, tlv(OCTET_STRING, nonce)))


def _status(response: SingleResponse) -> bytes:
    if not response.known:
        return UNKNOWN
    if response.revoked_at is None:
        return GOOD
    number = REASON_NUMBERS.get(response.reason)
    reason = b"" if number is None else tlv(EXPLICIT_0, enumerated(number))
    return tlv(EXPLICIT_1, generalized_time(response.revoked_at), reason)


def _key_hash(certificate: x509.Certificate, hash_name: str) -> bytes:
    """The hash of the octets of a certificate's subjectPublicKey (§4.1.1)."""
    info = asn1_x509.Certificate.load(certificate.public_bytes(Encoding.DER)).public_key
    return hashlib.new(hash_name, bytes(info["public_key"])).digest()
