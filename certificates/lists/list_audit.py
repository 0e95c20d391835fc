"""Check the published revocation lists against the database, sharing no code with what makes them."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from cryptography import x509
from django.conf import settings
from django.db.models import Q

from certificates.models import AuthorityRole, Certificate, CertificateAuthority, EndedHold, RevocationList

PATIENCE: Final = timedelta(minutes=1)
"""How long a revocation or the end of a hold may wait for its list before that is a finding."""
STALE_AT: Final = 0.75
"""The share of its life at which a list should have been renewed; renewal is due at half."""
SHOWN: Final = 5

Crl = x509.CertificateRevocationList
Entries = dict[str, tuple[datetime, str]]
"""Date and reason of each entry, by serial number."""


def findings(authority: CertificateAuthority, now: datetime) -> list[str]:
    scopes = ["full", *(f"shard-{shard}" for shard in range(authority.crl_shards))]
    lists = RevocationList.objects.filter(authority=authority)
    if lists.filter(scope="delta").exists():
        scopes.append("delta")
    found = [*_unlisted(authority, now)]
    for scope in scopes:
        newest = lists.filter(scope=scope).order_by("-number").first()
        if newest is None:
            found.append(f"{scope}: there is no list")
        else:
            found += [f"{scope} #{newest.number}: {text}" for text in _list_findings(newest, now)]
    return found


def _unlisted(authority: CertificateAuthority, now: datetime) -> Iterator[str]:
    revoked = Certificate.objects.filter(authority=authority, status="revoked", expires_at__gte=now)
    late = revoked.filter(first_crl_number=None, revoked_at__lt=now - PATIENCE).count()
    if late:
        yield f"{late} revocations have been on no list for more than a minute"
    ended = EndedHold.objects.filter(authority=authority, certificate__expires_at__gte=now)
    shown = ended.filter(hold_crl_number__isnull=False, end_crl_number=None)
    late = shown.filter(ended_at__lt=now - PATIENCE).count()
    if late:
        yield f"{late} holds ended more than a minute ago and are still on the lists"


def _list_findings(row: RevocationList, now: datetime) -> Iterator[str]:
    try:
        crl = x509.load_der_x509_crl(row.der)
    except ValueError:
        yield "can't be read"
        return
    yield from _scope(row, crl)
    yield from _entries(row, crl)
    issuer = x509.load_der_x509_certificate(bytes(row.authority.certificate_der))
    if crl.issuer != issuer.subject:
        yield "names another issuer"
    if not crl.is_signature_valid(issuer.public_key()):  # type: ignore[arg-type]
        yield "the signature is not the CA's"
    number = crl.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
    if number != row.number:
        yield f"carries number {number}"
    if number > row.authority.crl_number:
        yield f"its number is beyond the CA's {row.authority.crl_number}"
    if (crl.last_update_utc, crl.next_update_utc) != (row.this_update, row.next_update):
        yield "carries other dates than its row"
    if crl.last_update_utc > now:
        yield "is of the future"
    if row.next_update <= now:
        yield "is past its next update"
    elif row.scope != "delta" and now > row.this_update + (row.next_update - row.this_update) * STALE_AT:
        yield "should have been renewed by now"


def _scope(row: RevocationList, crl: Crl) -> Iterator[str]:
    """A list of a part of the certificates must say so in a critical extension, and only such a list."""
    authority = row.authority
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


def _entries(row: RevocationList, crl: Crl) -> Iterator[str]:
    wanted = {**_revoked(row), **_ended_since_base(row)}
    # The list may carry those whose hold ended in a round after this one, or not.
    ended = EndedHold.objects.filter(authority=row.authority, hold_crl_number__lte=row.number)
    later = ended.filter(Q(end_crl_number=None) | Q(end_crl_number__gt=row.number)).order_by()
    undecided = set(later.values_list("certificate__serial_number", flat=True))
    found = {}
    for entry in crl:
        serial, reason = f"{entry.serial_number:040x}", _extension(entry, x509.CRLReason)
        if serial not in undecided:
            found[serial] = entry.revocation_date_utc, reason.value.reason.value if reason else "unspecified"
    if len(crl) != row.entry_count:
        yield f"has {len(crl)} entries where its row says {row.entry_count}"
    lacking = sorted(wanted.keys() - found.keys() - undecided)
    surplus = sorted(found.keys() - wanted.keys())
    differing = sorted(serial for serial in found.keys() & wanted.keys() if found[serial] != wanted[serial])
    for what, serials in (("lacks", lacking), ("should not list", surplus), ("misstates", differing)):
        if serials:
            yield f"{what} {len(serials)} certificates: {', '.join(serials[:SHOWN])}"


def _revoked(row: RevocationList) -> Entries:
    certificates = Certificate.objects.filter(
        authority=row.authority,
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


def _ended_since_base(row: RevocationList) -> Entries:
    """Return what a delta must state of ended holds: `removeFromCRL`, or the revocation that followed."""
    if row.base_number is None:
        return {}
    ended = EndedHold.objects.filter(
        authority=row.authority,
        certificate__expires_at__gte=row.this_update - settings.CRL_VALIDITY,
        end_crl_number__gt=row.base_number,
        end_crl_number__lte=row.number,
    )
    found = {}
    for hold in ended.select_related("certificate").order_by("end_crl_number", "id"):
        certificate, date, reason = hold.certificate, hold.ended_at, "removeFromCRL"
        is_listed = certificate.status == "revoked" and certificate.first_crl_number is not None
        if is_listed and (certificate.first_crl_number or 0) <= row.number:
            date, reason = certificate.revoked_at or date, certificate.revocation_code
        found[certificate.serial_number] = date.replace(microsecond=0), reason
    return found


def _extension(owner: Any, kind: Any) -> Any:
    try:
        return owner.extensions.get_extension_for_class(kind)
    except x509.ExtensionNotFound:
        return None
