"""Certificate revocation lists (RFC 5280 §5) as pure functions.

A list may hold a million entries, so it never stands in memory as a whole: entries are encoded one by one
into a temporary file, hashed from there, and the finished list is given out in pieces. (The builder of
`cryptography` wants all entries at once, at half a kilobyte each.)
"""

import base64
import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Final, NamedTuple, Self

from cryptography import x509

from certificates.der import (
    OCTET_STRING,
    SEQUENCE,
    TRUE,
    algorithm_of,
    enumerated,
    header,
    integer,
    moment,
    oid,
    signature_of,
    tlv,
)
from certificates.reasons import REASON_NUMBERS
from certificates.x509 import IssuerInfo, PrivateKey

FULL: Final = "full"
DELTA: Final = "delta"
PIECE: Final = 1 << 20
IN_MEMORY: Final = 1 << 20
"""Shorter lists need no file."""

V2: Final = integer(1)
REASON_OID: Final = bytes.fromhex("0603551d15")


class RevokedEntry(NamedTuple):
    """One line of a list; `reason` unspecified is left out of it, as §5.3.1 asks."""

    serial: int
    revoked_at: datetime
    reason: x509.ReasonFlags = x509.ReasonFlags.unspecified


@dataclass(frozen=True)
class CrlWindow:
    """Which list, and how long it counts: `number` only grows, the dates are UTC in whole seconds."""

    number: int
    this_update: datetime
    next_update: datetime


def shard_name(shard: int) -> str:
    """The scope of one shard's lists."""
    return f"shard-{shard}"


@dataclass(frozen=True)
class ListScope:
    """What a list speaks for: all certificates of a CA, one shard of them, or what is new since a base.

    `url` is the distribution point of the certificates it speaks for; None: of all, wherever they point.
    `delta_url` is where the delta of a full list is (§5.2.6), `base_number` the list that a delta adds to.
    """

    name: str = FULL
    url: str | None = None
    delta_url: str | None = None
    base_number: int | None = None

    @classmethod
    def of_shard(cls, shard: int, url: str) -> Self:
        return cls(name=shard_name(shard), url=url)


class ListDraft:
    """The entries of a list on their way to it; a context manager, for the file they may need."""

    def __init__(self) -> None:
        self._entries = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  (closed on exit)
        self.count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entries.close()

    def add(self, entries: Iterable[bytes]) -> None:
        """Take encoded entries."""
        for entry in entries:
            self._entries.write(entry)
            self.count += 1

    def add_encoded(self, octets: bytes, count: int) -> None:
        """Take `count` encoded entries, one after the other in `octets`."""
        self._entries.write(octets)
        self.count += count

    def sign(
        self, *, window: CrlWindow, issuer: IssuerInfo, key: PrivateKey, scope: ListScope
    ) -> Iterator[bytes]:
        """The signed list in pieces; raises what the key raises before the first of them."""
        algorithm = algorithm_of(key)
        size = self._entries.tell()
        before = b"".join(
            (
                V2,
                algorithm,
                issuer.certificate.subject.public_bytes(),
                moment(window.this_update),
                moment(window.next_update),
                header(SEQUENCE, size) if size else b"",
            )
        )
        after = tlv(0xA0, tlv(SEQUENCE, *_extensions(window.number, issuer, scope)))
        length = len(before) + size + len(after)
        before = header(SEQUENCE, length) + before
        digest = hashlib.sha256(before)
        for piece in self._pieces():
            digest.update(piece)
        digest.update(after)
        after += algorithm + signature_of(key, digest.digest())
        yield header(SEQUENCE, len(before) + size + len(after)) + before
        yield from self._pieces()
        yield after

    def _pieces(self) -> Iterator[bytes]:
        self._entries.seek(0)
        while piece := self._entries.read(PIECE):
            yield piece


def build_crl(
    *,
    entries: Iterable[RevokedEntry],
    window: CrlWindow,
    issuer: IssuerInfo,
    key: PrivateKey,
    scope: ListScope,
) -> bytes:
    """A signed list as DER, in one piece."""
    with ListDraft() as draft:
        draft.add(map(encode_entry, entries))
        return b"".join(draft.sign(window=window, issuer=issuer, key=key, scope=scope))


def encode_entry(entry: RevokedEntry) -> bytes:
    """One line of a list in DER."""
    return tlv(SEQUENCE, integer(entry.serial), moment(entry.revoked_at), _REASONS[entry.reason])


def to_pem(der: bytes) -> bytes:
    """The list as PEM (RFC 7468 §6)."""
    body = base64.b64encode(der)
    lines = (body[start : start + 64] for start in range(0, len(body), 64))
    return b"\n".join([b"-----BEGIN X509 CRL-----", *lines, b"-----END X509 CRL-----", b""])


def pem_size(size: int) -> int:
    """Octets of the PEM form of a list of `size` octets."""
    body = (size + 2) // 3 * 4
    return body + -(-body // 64) + len(to_pem(b""))


def _reason_extension(number: int) -> bytes:
    value = tlv(OCTET_STRING, enumerated(number))
    return tlv(SEQUENCE, tlv(SEQUENCE, REASON_OID, value))


_REASONS: Final = {
    **{reason: _reason_extension(number) for reason, number in REASON_NUMBERS.items()},
    x509.ReasonFlags.unspecified: b"",
}


def _extensions(number: int, issuer: IssuerInfo, scope: ListScope) -> Iterator[bytes]:
    """In DER; the scope's distribution point equals the one in the certificates it speaks of (§5.2.5)."""
    yield _extension(x509.AuthorityKeyIdentifier(issuer.key_identifier, None, None))
    yield _extension(x509.CRLNumber(number))
    if scope.base_number is not None:
        yield _extension(x509.DeltaCRLIndicator(scope.base_number), critical=True)
    if scope.url is not None:
        yield _extension(_distribution_point(scope.url), critical=True)
    if scope.delta_url is not None:
        point = x509.DistributionPoint([x509.UniformResourceIdentifier(scope.delta_url)], None, None, None)
        yield _extension(x509.FreshestCRL([point]))


def _distribution_point(url: str) -> x509.IssuingDistributionPoint:
    return x509.IssuingDistributionPoint(
        full_name=[x509.UniformResourceIdentifier(url)],
        relative_name=None,
        only_contains_user_certs=False,
        only_contains_ca_certs=False,
        only_some_reasons=None,
        indirect_crl=False,
        only_contains_attribute_certs=False,
    )


def _extension(value: x509.ExtensionType, *, critical: bool = False) -> bytes:
    return tlv(
        SEQUENCE,
        oid(value.oid.dotted_string),
        TRUE if critical else b"",
        tlv(OCTET_STRING, value.public_bytes()),
    )
