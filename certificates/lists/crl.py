"""Certificate revocation lists (RFC 5280 §5) as pure functions.

Entries are encoded once, when a certificate is revoked: the CRL builder of `cryptography` would need every
entry of a list as an object, at half a kilobyte each.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from asn1crypto import pem
from asn1crypto.core import Integer
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from certificates.pki import der
from certificates.pki.x509 import IssuerInfo

FULL: Final = "full"
DELTA: Final = "delta"
V2: Final[bytes] = Integer(1).dump()


@dataclass(frozen=True)
class CrlWindow:
    """The number of a list and its dates, UTC in whole seconds; numbers only grow."""

    number: int
    this_update: datetime
    next_update: datetime


@dataclass(frozen=True)
class ListScope:
    """The scope of a list: all certificates of a CA, one shard of them, or the changes since a base list.

    `url` is the distribution point of the certificates it covers; None if they name different ones.
    `delta_url` is the address of a full list's delta (§5.2.6), `base_number` the base of a delta.
    """

    name: str = FULL
    url: str | None = None
    delta_url: str | None = None
    base_number: int | None = None
    shard: int | None = None


def shard_name(shard: int) -> str:
    return f"shard-{shard}"


def build_crl(
    entries: list[bytes], *, window: CrlWindow, issuer: IssuerInfo, key: rsa.RSAPrivateKey, scope: ListScope
) -> bytes:
    """Sign a list of encoded entries, as DER; raises what the key raises."""
    # The octets of a long list are joined once only, at the end.
    contents = [
        V2,
        der.RSA_SHA256,
        issuer.certificate.subject.public_bytes(),
        der.pkix_time(window.this_update),
        der.pkix_time(window.next_update),
        *([der.header(der.SEQUENCE, sum(map(len, entries))), *entries] if entries else []),
        der.tlv(der.EXPLICIT_0, der.tlv(der.SEQUENCE, *_extensions(window.number, issuer, scope))),
    ]
    to_sign = [der.header(der.SEQUENCE, sum(map(len, contents))), *contents]
    digest = hashlib.sha256()
    for octets in to_sign:
        digest.update(octets)
    return der.tlv(der.SEQUENCE, *to_sign, der.RSA_SHA256, der.signature_of(key, digest.digest()))


def to_pem(octets: bytes) -> bytes:
    armored: bytes = pem.armor("X509 CRL", octets)
    return armored


def pem_size(size: int) -> int:
    """The octets of the PEM form of a list of `size` octets."""
    body = (size + 2) // 3 * 4
    return body + -(-body // 64) + len(to_pem(b""))


def _extensions(number: int, issuer: IssuerInfo, scope: ListScope) -> Iterator[bytes]:
    """Encode a list's extensions; its distribution point equals that of its certificates (§5.2.5)."""
    yield der.extension(x509.AuthorityKeyIdentifier(issuer.key_identifier, None, None))
    yield der.extension(x509.CRLNumber(number))
    if scope.base_number is not None:
        yield der.extension(x509.DeltaCRLIndicator(scope.base_number), critical=True)
    if scope.url is not None:
        point = x509.IssuingDistributionPoint(
            full_name=[x509.UniformResourceIdentifier(scope.url)],
            relative_name=None,
            only_contains_user_certs=False,
            only_contains_ca_certs=False,
            only_some_reasons=None,
            indirect_crl=False,
            only_contains_attribute_certs=False,
        )
        yield der.extension(point, critical=True)
    if scope.delta_url is not None:
        delta = x509.DistributionPoint([x509.UniformResourceIdentifier(scope.delta_url)], None, None, None)
        yield der.extension(x509.FreshestCRL([delta]))
