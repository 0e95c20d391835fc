"""Test signatures: every signing key is in its token and belongs to the public key that others know."""

import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

from auditlog.models import LogKey
from auditlog.sealing import keys as log_keys
from certificates.models import Certificate, CertificateAuthority, OcspResponder
from certificates.pki import signing
from certificates.public import messages
from compliance.core import environments
from compliance.core.errors import ServiceError
from compliance.keys.base import PublicKey
from compliance.keys.registry import private_key
from delegation.jose import jws
from delegation.lifecycle import KeyStatus
from delegation.models import TokenKey

SHOWN: Final = 5


@dataclass
class Signatures:
    """The count of keys that signed, and the name of each other one with the reason.

    `document` is what they sign: a JSON object that says what it is for.
    """

    made: int = 0
    failed: list[str] = field(default_factory=list)
    document: bytes = field(
        default_factory=lambda: json.dumps({"restore_check": secrets.token_hex(16)}).encode()
    )

    def attempt(self, name: str, sign_and_verify: Callable[[], bool]) -> None:
        """Count a key that signs; note one that does not, or whose signature is another key's."""
        try:
            is_valid = sign_and_verify()
        except ServiceError as error:
            self.failed.append(f"{name}: {error.message}")
            return
        if is_valid:
            self.made += 1
        else:
            self.failed.append(f"{name}: the signature is another key's")

    def problem(self) -> str:
        """Return the first failures; empty if every key signed."""
        if not self.failed:
            return ""
        more = len(self.failed) - SHOWN
        return "; ".join(self.failed[:SHOWN]) + (f"; and {more} more" if more > 0 else "")


def of_the_service(now: datetime) -> Signatures:
    """Sign once with every key of CAs, OCSP responders, tokens and the audit log that is in use."""
    found = Signatures()
    document = found.document
    for name, uri, public in _named_keys(now):
        found.attempt(name, lambda uri=uri, public=public: _signs(uri, public, document))  # type: ignore[misc]
    for key in LogKey.objects.signing(now):
        found.attempt(f"log key {key}", lambda key=key: _log_signs(key, document))  # type: ignore[misc]
    return found


def of_agents(sample: int, now: datetime) -> Signatures:
    """Sign once with agents' keys: half of `sample` the newest, which a backup of tokens may lack."""
    found = Signatures()
    document = found.document
    active = Certificate.objects.active(now)
    newest = list(active.order_by("-issued_at", "-id")[: sample - sample // 2])
    others = active.exclude(id__in=[each.id for each in newest]).order_by("?")[: sample // 2]
    for certificate in (*newest, *others):
        found.attempt(
            f"certificate {certificate.serial_number}",
            lambda certificate=certificate: signing.verifies(  # type: ignore[misc]
                certificate.certificate_pem, document, messages.sign_octets(certificate, document)
            ),
        )
    return found


def _named_keys(now: datetime) -> Iterator[tuple[str, str, PublicKey]]:
    for authority in CertificateAuthority.objects.publishing(now).order_by("created_at", "id"):
        yield authority.common_name, authority.key_uri, _certified(authority.certificate_der)
    # Of each CA the newest responder, if it is valid: others are about to be replaced.
    newest = OcspResponder.objects.order_by("authority_id", "-created_at").distinct("authority_id")
    for responder in OcspResponder.objects.filter(pk__in=newest.values("pk"), not_after__gt=now):
        name = f"OCSP responder {responder.serial_number}"
        yield name, responder.key_uri, _certified(responder.certificate_der)
    for key in TokenKey.objects.with_status(KeyStatus.ACTIVE, KeyStatus.PUBLISHED).order_by("published_at"):
        yield f"token key {key.kid}", key.uri, jws.public_key(key.public_jwk)


def _certified(der: bytes | memoryview) -> PublicKey:
    key = x509.load_der_x509_certificate(bytes(der)).public_key()
    if not isinstance(key, PublicKey):
        raise TypeError(f"a certificate for a {type(key).__name__}")
    return key


def _signs(uri: str, public: PublicKey, document: bytes) -> bool:
    key = private_key(environments.current(), uri)
    try:
        if isinstance(key, rsa.RSAPrivateKey) and isinstance(public, rsa.RSAPublicKey):
            signature = key.sign(document, padding.PKCS1v15(), hashes.SHA256())
            public.verify(signature, document, padding.PKCS1v15(), hashes.SHA256())
        elif isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(public, ec.EllipticCurvePublicKey):
            signature = key.sign(document, ec.ECDSA(hashes.SHA256()))
            public.verify(signature, document, ec.ECDSA(hashes.SHA256()))
        else:
            return False
    except InvalidSignature:
        return False
    return True


def _log_signs(key: LogKey, document: bytes) -> bool:
    try:
        public = ed25519.Ed25519PublicKey.from_public_bytes(bytes(key.public_key))
        public.verify(log_keys.sign_document(document, key=key), document)
    except InvalidSignature:
        return False
    return True
