"""The published lists against the database, by a reader that shares nothing with what makes them."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from cryptography import x509
from django.conf import settings
from django.db.models import Q

from certificates.models import (
    AuthorityRole,
    Certificate,
    CertificateAuthority,
    CertificateStatus,
    EndedHold,
    RevocationList,
)

PATIENCE: Final = timedelta(minutes=1)
"""How long a revocation or the end of a hold may wait for its list before it is a finding."""
STALE_AT: Final = 0.75
"""Lists are renewed at half their life; one this old was not."""
SHOWN: Final = 5


def findings(authority: CertificateAuthority, now: datetime) -> list[str]:
    """What is wrong with the newest lists of a CA; empty when all is well."""
    scopes = ["full", *(f"shard-{shard}" for shard in range(authority.crl_shards))]
    lists = RevocationList.objects.filter(authority=authority)
    found = [*_waiting(authority, now)]
    for scope in [*scopes, *lists.filter(scope="delta").values_list("scope", flat=True).distinct()]:
        newest = lists.filter(scope=scope).order_by("-number").first()
        if newest is None:
            found.append(f"{scope}: there is no list")
        else:
            found += [f"{scope} #{newest.number}: {text}" for text in _of_list(authority, newest, now)]
    return found


def _waiting(authority: CertificateAuthority, now: datetime) -> Iterator[str]:
    revoked = Certificate.objects.filter(authority=authority, status="revoked", expires_at__gte=now)
    late = revoked.filter(first_crl_number=None, revoked_at__lt=now - PATIENCE).count()
    if late:
        yield f"{late} revocations have been on no list for more than a minute"
    ended = EndedHold.objects.filter(authority=authority, certificate__expires_at__gte=now)
    late = ended.unpublished().filter(ended_at__lt=now - PATIENCE).count()
    if late:
        yield f"{late} holds ended more than a minute ago and are still on the lists"


def _of_list(authority: CertificateAuthority, row: RevocationList, now: datetime) -> Iterator[str]:
    der = row.der
    try:
        crl = x509.load_der_x509_crl(der)
    except ValueError:
        yield "can't be read"
        return
    yield from _envelope(authority, row, crl)
    yield from _dates(row, crl, now)
    yield from _scope(authority, row, crl)
    yield from _entries(authority, row, crl)


def _envelope(
    authority: CertificateAuthority, row: RevocationList, crl: x509.CertificateRevocationList
) -> Iterator[str]:
    issuer = x509.load_der_x509_certificate(bytes(authority.certificate_der))
    if crl.issuer != issuer.subject:
        yield "names another issuer"
    if not crl.is_signature_valid(issuer.public_key()):  # type: ignore[arg-type]
        yield "the signature is not the CA's"
    number = crl.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
    if number != row.number:
        yield f"carries number {number}"
    if number > authority.crl_number:
        yield f"its number is beyond the CA's {authority.crl_number}"


def _dates(row: RevocationList, crl: x509.CertificateRevocationList, now: datetime) -> Iterator[str]:
    if (crl.last_update_utc, crl.next_update_utc) != (row.this_update, row.next_update):
        yield "carries other dates than its row"
    if crl.last_update_utc > now:
        yield "is of the future"
    if row.next_update <= now:
        yield "is past its next update"
    elif row.scope != "delta" and now > row.this_update + (row.next_update - row.this_update) * STALE_AT:
        yield "should have been renewed by now"


def _scope(
    authority: CertificateAuthority, row: RevocationList, crl: x509.CertificateRevocationList
) -> Iterator[str]:
    """A list that speaks for a part says so, in a critical extension; one that speaks for all does not."""
    url: str | None = None
    if row.scope.startswith("shard-"):
        url = f"{authority.crl_url}/{row.scope.removeprefix('shard-')}"
    elif authority.role != AuthorityRole.ROOT and not authority.crl_shards:
        url = authority.crl_url
    point = _extension(crl, x509.IssuingDistributionPoint)
    names = [name.value for name in point.value.full_name or ()] if point else []
    if names != ([url] if url else []) or (point and not point.critical):
        yield f"speaks for {names or 'all certificates'} instead of {url or 'all certificates'}"
    base = _extension(crl, x509.DeltaCRLIndicator)
    if (base.value.crl_number if base else None) != row.base_number:
        yield "names another base than its row"


def _extension(crl: x509.CertificateRevocationList, kind: Any) -> Any:
    try:
        return crl.extensions.get_extension_for_class(kind)
    except x509.ExtensionNotFound:
        return None


def _entries(
    authority: CertificateAuthority, row: RevocationList, crl: x509.CertificateRevocationList
) -> Iterator[str]:
    """Serial, date and reason of each line against its row."""
    wanted = {**_wanted(authority, row), **_ended_since_base(authority, row)}
    in_between = _ending(authority, row)
    surplus = []
    differing = []
    for entry in crl:
        serial = f"{entry.serial_number:040x}"
        expected = wanted.pop(serial, None)
        if serial in in_between:
            continue
        if expected is None:
            surplus.append(serial)
        elif expected != (entry.revocation_date_utc, _reason(entry)):
            differing.append(serial)
    if len(crl) != row.entry_count:
        yield f"has {len(crl)} entries where its row says {row.entry_count}"
    lacking = [serial for serial in wanted if serial not in in_between]
    for what, serials in (("lacks", lacking), ("should not list", surplus), ("misstates", differing)):
        if serials:
            yield f"{what} {len(serials)} certificates: {', '.join(serials[:SHOWN])}"


def _wanted(authority: CertificateAuthority, row: RevocationList) -> dict[str, tuple[datetime, str]]:
    certificates = Certificate.objects.filter(
        authority=authority,
        status="revoked",
        expires_at__gte=row.this_update - settings.CRL_VALIDITY,
        first_crl_number__lte=row.number,
        first_crl_number__gt=row.base_number or 0,
    )
    if row.scope.startswith("shard-"):
        certificates = certificates.filter(crl_shard=int(row.scope.removeprefix("shard-")))
    columns = certificates.order_by().values_list("serial_number", "revoked_at", "revocation_code")
    return {
        serial: (revoked_at.replace(microsecond=0), code or "unspecified")
        for serial, revoked_at, code in columns.iterator(chunk_size=10_000)
        if revoked_at is not None
    }


def _ended_since_base(
    authority: CertificateAuthority, row: RevocationList
) -> dict[str, tuple[datetime, str]]:
    """What a delta says of certificates whose hold has ended since its base.

    1. Every such certificate is taken off the list: `removeFromCRL`.
    2. But if it is revoked or held again by the delta's round, the delta tells that revocation instead.
    """
    if row.base_number is None:
        return {}
    ended = EndedHold.objects.filter(
        authority=authority,
        certificate__expires_at__gte=row.this_update - settings.CRL_VALIDITY,
        end_crl_number__gt=row.base_number,
        end_crl_number__lte=row.number,
    )
    found = {}
    for hold in ended.select_related("certificate").order_by("end_crl_number", "id"):
        certificate, moment, reason = hold.certificate, hold.ended_at, "removeFromCRL"
        is_revoked, first = certificate.status == CertificateStatus.REVOKED, certificate.first_crl_number
        if is_revoked and first is not None and first <= row.number:
            moment, reason = certificate.revoked_at or moment, certificate.revocation_code
        found[certificate.serial_number] = moment.replace(microsecond=0), reason
    return found


def _ending(authority: CertificateAuthority, row: RevocationList) -> set[str]:
    """Serials of holds whose end belongs to a round after the list's: it may carry them or not."""
    ended = EndedHold.objects.filter(authority=authority, hold_crl_number__lte=row.number)
    later = ended.filter(Q(end_crl_number=None) | Q(end_crl_number__gt=row.number))
    return set(later.order_by().values_list("certificate__serial_number", flat=True))


def _reason(entry: x509.RevokedCertificate) -> str:
    try:
        reason = entry.extensions.get_extension_for_class(x509.CRLReason).value.reason
    except x509.ExtensionNotFound:
        return "unspecified"
    return str(reason.value)
