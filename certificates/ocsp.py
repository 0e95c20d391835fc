"""OCSP messages (RFC 6960, nonces as in RFC 9654) as pure functions: requests read, responses written."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from asn1crypto import ocsp as asn1
from asn1crypto import x509 as asn1_x509
from asn1crypto.core import OctetString
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from certificates.der import (
    EXPLICIT_0,
    EXPLICIT_1,
    EXPLICIT_2,
    OCTET_STRING,
    SEQUENCE,
    algorithm_of,
    enumerated,
    generalized_time,
    oid,
    signature_of,
    tlv,
)
from certificates.reasons import REASON_NUMBERS
from certificates.x509 import PrivateKey
from compliance.encodings import b64_decode

MAX_REQUEST: Final = 8 * 1024
MAX_CERTIFICATES: Final = 16
MAX_NONCE: Final = 128
HASHES: Final = ("sha1", "sha256", "sha384", "sha512")
"""What a request may name its issuer by; SHA-1 is what most clients use, and collisions gain nothing here."""

SUCCESSFUL: Final = 0
MALFORMED: Final = 1
TRY_LATER: Final = 3
UNAUTHORIZED: Final = 6

BASIC: Final = oid("1.3.6.1.5.5.7.48.1.1")
NONCE: Final = oid("1.3.6.1.5.5.7.48.1.2")
GOOD: Final = bytes.fromhex("8000")
UNKNOWN: Final = bytes.fromhex("8200")

# What asn1crypto raises while it reads octets that are something else.
_UNREADABLE: Final = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
)


class MalformedRequest(Exception):
    """Not a request, or one beyond the limits."""


@dataclass(frozen=True)
class CertificateId:
    """A certificate that is asked about; the issuer is told by hashes of its name and key."""

    hash_name: str
    name_hash: bytes
    key_hash: bytes
    serial: int
    der: bytes


@dataclass(frozen=True)
class Question:
    """A request: about at least one certificate; `nonce` comes back in the answer."""

    certificates: tuple[CertificateId, ...]
    nonce: bytes | None


@dataclass(frozen=True)
class Status:
    """The answer for one certificate: unknown, good, or revoked at a time for a reason."""

    certificate: CertificateId
    known: bool
    revoked_at: datetime | None = None
    reason: x509.ReasonFlags = x509.ReasonFlags.unspecified


@dataclass(frozen=True)
class Responder:
    """Who signs: the certificate that goes along, and the SHA-1 of its key, by which the answer names it."""

    certificate_der: bytes
    key_hash: bytes

    @classmethod
    def of(cls, certificate_der: bytes) -> "Responder":
        certificate = x509.load_der_x509_certificate(certificate_der)
        return cls(certificate_der, _key_hash(certificate, "sha1"))


@dataclass(frozen=True)
class IssuerHashes:
    """How requests name a CA under one hash."""

    name_hash: bytes
    key_hash: bytes

    @classmethod
    def of(cls, certificate: x509.Certificate, hash_name: str) -> "IssuerHashes":
        subject = certificate.subject.public_bytes()
        return cls(hashlib.new(hash_name, subject).digest(), _key_hash(certificate, hash_name))

    def names(self, certificate: CertificateId) -> bool:
        """Whether the CA issued, by its own claim, what is asked about."""
        return (certificate.name_hash, certificate.key_hash) == (self.name_hash, self.key_hash)


def read_request(der: bytes) -> Question:
    """Raises `MalformedRequest`. A signature on the request is not looked at: anyone may ask."""
    if len(der) > MAX_REQUEST:
        raise MalformedRequest("too long")
    try:
        request = asn1.OCSPRequest.load(der, strict=True)["tbs_request"]
        found = [_certificate_id(item) for item in request["request_list"]]
        nonce = _nonce(request["request_extensions"])
    except _UNREADABLE as error:
        raise MalformedRequest("not an OCSPRequest") from error
    if not 1 <= len(found) <= MAX_CERTIFICATES:
        raise MalformedRequest("about no certificate, or too many")
    return Question(tuple(found), nonce)


def read_encoded_request(text: str) -> Question:
    """The request that a GET carries in base64 (RFC 6960 appendix A.1); raises `MalformedRequest`."""
    if len(text) > MAX_REQUEST * 2:
        raise MalformedRequest("too long")
    try:
        return read_request(b64_decode(text))
    except ValueError as error:
        raise MalformedRequest("not base64") from error


def error_response(status: int) -> bytes:
    """An answer that tells no certificate's status; unsigned, as §4.2.1 has it."""
    return tlv(SEQUENCE, enumerated(status))


def signed_response(
    statuses: Sequence[Status],
    *,
    nonce: bytes | None,
    this_update: datetime,
    next_update: datetime,
    responder: Responder,
    key: PrivateKey,
) -> bytes:
    """A signed answer that carries the responder's certificate; times in whole seconds UTC."""
    since, until = generalized_time(this_update), tlv(EXPLICIT_0, generalized_time(next_update))
    data = tlv(
        SEQUENCE,
        tlv(EXPLICIT_2, tlv(OCTET_STRING, responder.key_hash)),
        since,
        tlv(SEQUENCE, *[tlv(SEQUENCE, one.certificate.der, _status(one), since, until) for one in statuses]),
        b"" if nonce is None else tlv(EXPLICIT_1, tlv(SEQUENCE, _nonce_extension(nonce))),
    )
    signature = signature_of(key, hashlib.sha256(data).digest())
    certificates = tlv(EXPLICIT_0, tlv(SEQUENCE, responder.certificate_der))
    basic = tlv(OCTET_STRING, tlv(SEQUENCE, data, algorithm_of(key), signature, certificates))
    return tlv(SEQUENCE, enumerated(SUCCESSFUL), tlv(EXPLICIT_0, tlv(SEQUENCE, BASIC, basic)))


def _certificate_id(item: Any) -> CertificateId:
    for extension in item["single_request_extensions"] or ():
        if extension["critical"].native:
            raise ValueError("critical extension")
    found = item["req_cert"]
    hash_name = found["hash_algorithm"]["algorithm"].native
    if hash_name not in HASHES:
        raise ValueError("unknown hash")
    return CertificateId(
        hash_name,
        found["issuer_name_hash"].native,
        found["issuer_key_hash"].native,
        found["serial_number"].native,
        found.dump(force=True),
    )


def _nonce(extensions: Any) -> bytes | None:
    """Of 1 to 128 octets (RFC 9654 §2.1); the only extension that may be critical."""
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


def _status(status: Status) -> bytes:
    if not status.known:
        return UNKNOWN
    if status.revoked_at is None:
        return GOOD
    number = REASON_NUMBERS.get(status.reason)
    reason = b"" if number is None else tlv(EXPLICIT_0, enumerated(number))
    return tlv(EXPLICIT_1, generalized_time(status.revoked_at), reason)


def _key_hash(certificate: x509.Certificate, hash_name: str) -> bytes:
    """Of the subjectPublicKey's octets alone (§4.1.1), which a key identifier made by SHA-1 is too."""
    info = asn1_x509.Certificate.load(certificate.public_bytes(Encoding.DER)).public_key
    return hashlib.new(hash_name, bytes(info["public_key"])).digest()
