"""Questions to an OCSP responder, and what its answers are worth (RFC 6960 §3.2, RFC 9654)."""

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp
from cryptography.x509.oid import ExtendedKeyUsageOID

from agentid.errors import NotValid, Reason
from agentid.verify.x509.certificates import STRONG, check_period, extension, is_issued_by, parsing

SKEW: Final = timedelta(seconds=60)
NONCE_OCTETS: Final = 32


@dataclass(frozen=True)
class OcspQuestion:
    """A request about one certificate, in DER, and the nonce its answer must repeat."""

    request: bytes = field(repr=False)
    nonce: bytes

    @classmethod
    def about(cls, certificate: x509.Certificate, issuer: x509.Certificate) -> Self:
        nonce = secrets.token_bytes(NONCE_OCTETS)
        builder = ocsp.OCSPRequestBuilder().add_certificate(certificate, issuer, hashes.SHA256())
        request = builder.add_extension(x509.OCSPNonce(nonce), critical=False).build()
        return cls(request.public_bytes(Encoding.DER), nonce)


@dataclass(frozen=True)
class OcspAnswer:
    """A responder's answer in DER; with `nonce` it must be the answer to that very question.

    Without a nonce, an answer from before a revocation passes for as long as it says itself.
    """

    response: bytes = field(repr=False)
    nonce: bytes | None

    @parsing("an OCSP response")
    def check(self, certificate: x509.Certificate, *, issuer: x509.Certificate, now: datetime) -> None:
        """Raise NotValid: revoked; or another reason if the answer cannot tell."""
        response = ocsp.load_der_ocsp_response(self.response)
        if response.response_status is not ocsp.OCSPResponseStatus.SUCCESSFUL:
            raise NotValid(Reason.STATUS_UNKNOWN, response.response_status.name.lower())
        _check_responder(response, issuer, now)
        nonces = [each.value.nonce for each in response.extensions if isinstance(each.value, x509.OCSPNonce)]
        if self.nonce is not None and nonces != [self.nonce]:
            raise NotValid(Reason.WRONG_NONCE, "an answer to another question")
        single = _single(response, certificate, issuer)
        if single.this_update_utc > now + SKEW:
            raise NotValid(Reason.NOT_YET_VALID, "the answer is from the future")
        if single.next_update_utc is None or single.next_update_utc <= now:
            raise NotValid(Reason.STALE, "the answer's time is over")
        if single.certificate_status is ocsp.OCSPCertStatus.REVOKED:
            raise NotValid(Reason.REVOKED)
        if single.certificate_status is not ocsp.OCSPCertStatus.GOOD:
            raise NotValid(Reason.STATUS_UNKNOWN, "the responder does not know the certificate")


def _check_responder(response: ocsp.OCSPResponse, issuer: x509.Certificate, now: datetime) -> None:
    """Raise NotValid unless the CA, or one that it charged with OCSP, signed (§4.2.2.2)."""
    charged = (
        each
        for each in response.certificates
        if ExtendedKeyUsageOID.OCSP_SIGNING in (extension(each, x509.ExtendedKeyUsage) or ())
        and is_issued_by(each, issuer)
    )
    signer = next(charged, issuer)
    check_period(signer, now)
    if not isinstance(response.signature_hash_algorithm, STRONG):
        raise NotValid(Reason.UNSUPPORTED_ALGORITHM, "an answer signed with a weak hash")
    key, octets = signer.public_key(), response.tbs_response_bytes
    try:
        if isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(response.signature, octets, ec.ECDSA(response.signature_hash_algorithm))
        elif isinstance(key, rsa.RSAPublicKey):
            key.verify(response.signature, octets, padding.PKCS1v15(), response.signature_hash_algorithm)
        else:
            raise NotValid(Reason.UNSUPPORTED_ALGORITHM)
    except InvalidSignature:
        raise NotValid(Reason.INVALID_SIGNATURE, "not signed by the CA's responder") from None


def _single(
    response: ocsp.OCSPResponse, certificate: x509.Certificate, issuer: x509.Certificate
) -> ocsp.OCSPSingleResponse:
    """What the answer says of the certificate: by its serial number, and its issuer's name and key."""
    for each in response.responses:
        algorithm: Any = each.hash_algorithm
        asked = ocsp.OCSPRequestBuilder().add_certificate(certificate, issuer, algorithm).build()
        wanted: tuple[Any, ...] = (asked.serial_number, asked.issuer_name_hash, asked.issuer_key_hash)
        if (each.serial_number, each.issuer_name_hash, each.issuer_key_hash) == wanted:
            return each
    raise NotValid(Reason.NOT_COVERED, "an answer about another certificate")
