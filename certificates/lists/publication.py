"""Publishing revocation lists in rounds: numbered upwards, made only when due, never in a request.

A round makes a CA's full list, its delta and the shards that have changed or aged, all under one number. One
process at a time makes it in steps that each commit: take the number, mark the revocations of this round,
build and store each list, close the round. After a crash the round is due again, and the next round carries
what was marked for it.
"""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from certificates.errors import ListBeingMade
from certificates.lists.crl import DELTA, FULL, CrlWindow, ListScope, build_crl, shard_name
from certificates.models import (
    AuthorityRole,
    Certificate,
    CertificateAuthority,
    EndedHold,
    RevocationList,
    RevocationListPart,
)
from certificates.querysets import CertificateQuerySet
from compliance.core import environments
from compliance.keys.registry import rsa_private_key
from compliance.stores import session_locks, sql
from compliance.stores.sweeps import each

MARK_BATCH: Final = 10_000
RENEW_AT: Final = 0.5
"""The share of its life after which a list is renewed; the rest is time to repair what prevents it."""
KEPT_BODIES: Final = 2
"""Lists of each scope that keep their octets: the newest, and the one that a client may still be reading."""
PART_OCTETS: Final = 1 << 20
READ_TIMEOUT: Final = "10min"
ENTRIES_IN_ROW: Final = 4_096
"""Entries that the server joins into one row: fetching a row for each would take most of the time."""

_READ = """
SELECT count(*), string_agg(crl_entry, ''::bytea) FROM (
    SELECT crl_entry, row_number() OVER () / %(in_row)s AS chunk FROM ({entries}) AS entries
) AS numbered GROUP BY chunk
"""
_REVOKED = """
SELECT crl_entry FROM certificates_certificate
WHERE authority_id = %(authority)s AND status = 'revoked' AND expires_at >= %(oldest_end)s
    AND first_crl_number <= %(number)s AND first_crl_number > %(base)s
"""
# A certificate whose hold has ended since the base has its present entry, or its removal, on the delta. One
# that was first listed since the base is among the revoked already.
_ENDED_HOLDS = """
UNION ALL (
    SELECT DISTINCT ON (certificate.id)
        CASE WHEN certificate.status = 'revoked' AND certificate.first_crl_number <= %(number)s
            THEN certificate.crl_entry ELSE hold.crl_entry END
    FROM certificates_endedhold AS hold
    JOIN certificates_certificate AS certificate ON certificate.id = hold.certificate_id
    WHERE hold.authority_id = %(authority)s AND certificate.expires_at >= %(oldest_end)s
        AND hold.end_crl_number <= %(number)s AND hold.end_crl_number > %(base)s
        AND (certificate.status = 'revoked' AND certificate.first_crl_number <= %(number)s
            AND certificate.first_crl_number > %(base)s) IS NOT TRUE
    ORDER BY certificate.id, hold.end_crl_number DESC, hold.id DESC
)
"""
_WRITE = """
INSERT INTO certificates_revocationlistpart (revocation_list_id, position, body) VALUES (%s, %s, %b)
"""


def publish(*, authority_id: UUID, actor: Actor, now: datetime, force: bool = False) -> RevocationList | None:
    """Publish a round of a CA's lists if it is due, or with `force`; return the full list.

    None if no round is due or another process is making one, for which `force` raises ListBeingMade.
    """
    if not force and not lists_are_due(authority_id=authority_id, now=now):
        return None
    with session_locks.locked(authority_id) as is_mine:
        if not is_mine and force:
            raise ListBeingMade()
        # Another process may have made the round meanwhile.
        if is_mine and (force or lists_are_due(authority_id=authority_id, now=now)):
            return _make_round(CertificateAuthority.objects.get(id=authority_id), actor, now, force)
    return None


def publish_due(*, actor: Actor, now: datetime) -> int:
    publishing = CertificateAuthority.objects.publishing(now).order_by("created_at", "id")
    ids = publishing.values_list("id", flat=True)
    return each(ids, lambda one: publish(authority_id=one, actor=actor, now=now) is not None)


def lists_are_due(*, authority_id: UUID, now: datetime) -> bool:
    """Whether a CA has a list to make: missing, aged or unfinished, or a change that is on no list yet."""
    authority = CertificateAuthority.objects.get(id=authority_id)
    newest = _newest(authority)
    unlisted = (_unlisted(authority, now), _unlisted_ends(authority, now))
    return (
        authority.crl_completed != authority.crl_number
        or bool({FULL, *_shard_names(authority)} - newest.keys())
        or any(_has_aged(found, now) for found in newest.values())
        or any(rows.exists() for rows in unlisted)
    )


def _begin(authority: CertificateAuthority, now: datetime) -> CrlWindow:
    """Take the next number and mark what has changed as part of it; return number and dates."""
    with environments.atomic():
        authority.refresh_from_db(from_queryset=CertificateAuthority.objects.locked())
        authority.crl_number += 1
        authority.save(update_fields=["crl_number"])
    this_update = now.replace(microsecond=0)
    window = CrlWindow(authority.crl_number, this_update, this_update + settings.CRL_VALIDITY)
    _mark(authority, window)
    return window


def _mark(authority: CertificateAuthority, window: CrlWindow) -> None:
    """Write the round's number on every change that no list shows yet; later changes stay due.

    Revocations and holds come first, ends of holds second. A certificate released and held again in between
    then has the end of its old hold in this round and its new hold in a later one. The other order would put
    the end of the old hold last, as if the new one had ended.
    """
    unmarked = _unlisted(authority, window.this_update)
    while True:
        batch = unmarked.order_by().values("id")[:MARK_BATCH]
        # Revoked, again: a row may have been released while this statement waited for its lock.
        rows = Certificate.objects.filter(id__in=batch, status="revoked")
        marked = rows.update(first_crl_number=window.number)
        if marked < MARK_BATCH:
            break
    ended = _unlisted_ends(authority, window.this_update)
    EndedHold.objects.filter(id__in=ended.order_by().values("id")).update(end_crl_number=window.number)


def _shards_to_make(
    authority: CertificateAuthority, newest: dict[str, RevocationList], now: datetime, force: bool
) -> list[int]:
    since = authority.crl_completed
    revoked = Certificate.objects.filter(authority=authority, status="revoked", first_crl_number__gt=since)
    ended = EndedHold.objects.filter(authority=authority, end_crl_number__gt=since)
    changed = {
        *revoked.order_by().values_list("crl_shard", flat=True).distinct(),
        *ended.order_by().values_list("certificate__crl_shard", flat=True).distinct(),
    }
    return [
        shard
        for shard, name in enumerate(_shard_names(authority))
        if force or shard in changed or name not in newest or _has_aged(newest[name], now)
    ]


def _make_round(authority: CertificateAuthority, actor: Actor, now: datetime, force: bool) -> RevocationList:
    """Make the lists of a round, the full list last: clients that see it find the others there."""
    newest, issuer = _newest(authority), authority.as_issuer
    window = _begin(authority, now)
    is_root = authority.role == AuthorityRole.ROOT
    # A list names a distribution point only if all its certificates do: those of several shards name
    # different ones, and a root, which `openssl verify -crl_check_all` looks up on its own list, names none.
    url = None if is_root or authority.crl_shards else authority.crl_url
    delta_url = None if is_root else f"{authority.crl_url}/{DELTA}"
    shards = _shards_to_make(authority, newest, now, force)
    # The base is the oldest full list still valid: the delta adds to it and to every later one.
    valid = RevocationList.objects.filter(authority=authority, scope=FULL, next_update__gt=now)
    base_number = None if is_root else valid.order_by("number").values_list("number", flat=True).first()
    for shard in shards:
        address = issuer.for_shard(shard).crl_url
        _make(authority, window, ListScope(shard_name(shard), address, shard=shard))
    if base_number is None:
        RevocationList.objects.filter(authority=authority, scope=DELTA).delete()
    else:
        _make(authority, window, ListScope(DELTA, url, base_number=base_number))
    full = _make(authority, window, ListScope(FULL, url, delta_url))
    with environments.atomic():
        authority.crl_completed = window.number
        authority.save(update_fields=["crl_completed"])
        auditlog.record(
            of=authority,
            action=AuditAction.CRL_PUBLISHED,
            description=f"Revocation list {full.number} of {authority.common_name} published",
            metadata={
                "number": full.number,
                "entries": full.entry_count,
                "next_update": full.next_update.isoformat(),
                "shards": shards,
            },
            actor=actor,
            now=now,
        )
    return full


def _make(authority: CertificateAuthority, window: CrlWindow, scope: ListScope) -> RevocationList:
    count, entries = read_entries(
        authority=authority, window=window, scope=scope, period=settings.CRL_VALIDITY
    )
    issuer, key = authority.as_issuer, rsa_private_key(authority.key_uri)
    der = build_crl(entries, window=window, issuer=issuer, key=key, scope=scope)
    with environments.atomic():
        made = RevocationList.objects.create(
            authority=authority,
            scope=scope.name,
            base_number=scope.base_number,
            **asdict(window),
            entry_count=count,
            size=len(der),
        )
        with sql.driver_cursor() as cursor:
            for position, start in enumerate(range(0, len(der), PART_OCTETS)):
                cursor.execute(_WRITE, (made.id, position, der[start : start + PART_OCTETS]))
        # Octets that no client can ask for, and rows whose list no delta has as its base.
        lists = RevocationList.objects.filter(authority=authority, scope=scope.name)
        kept = list(lists.order_by("-number").values_list("id", flat=True)[:KEPT_BODIES])
        stale = lists.exclude(id__in=kept)
        RevocationListPart.objects.filter(revocation_list__in=stale).delete()
        stale.filter(next_update__lt=made.this_update).delete()
    return made


def read_entries(
    *, authority: CertificateAuthority, window: CrlWindow, scope: ListScope, period: timedelta
) -> tuple[int, list[bytes]]:
    """The number of entries of a list and their DER, without certificates expired a `period` ago."""
    of_shard = "" if scope.shard is None else "AND crl_shard = %(shard)s"
    ended_holds = "" if scope.base_number is None else _ENDED_HOLDS
    params = {
        "authority": authority.id,
        "oldest_end": window.this_update - period,
        "number": window.number,
        "base": scope.base_number or 0,
        "shard": scope.shard,
        "in_row": ENTRIES_IN_ROW,
    }
    statement = _READ.format(entries=f"{_REVOKED} {of_shard} {ended_holds}")
    with environments.atomic():
        sql.execute(f"SET LOCAL statement_timeout = '{READ_TIMEOUT}'")
        with sql.driver_cursor() as cursor:
            rows = cursor.execute(statement, params, binary=True).fetchall()
    return sum(count for count, _ in rows), [octets for _, octets in rows]


def _newest(authority: CertificateAuthority) -> dict[str, RevocationList]:
    lists = RevocationList.objects.filter(authority=authority).exclude(scope=DELTA)
    return {found.scope: found for found in lists.order_by("scope", "-number").distinct("scope")}


def _has_aged(newest: RevocationList, now: datetime) -> bool:
    return now >= newest.this_update + (newest.next_update - newest.this_update) * RENEW_AT


def _shard_names(authority: CertificateAuthority) -> list[str]:
    return [shard_name(shard) for shard in range(authority.crl_shards)]


def _unlisted(authority: CertificateAuthority, now: datetime) -> CertificateQuerySet:
    """Revoked, on no list yet, and expired at most one list's validity ago (RFC 5280 §3.3)."""
    since = now - settings.CRL_VALIDITY
    revoked = Certificate.objects.filter(authority=authority, status="revoked", expires_at__gte=since)
    return revoked.filter(first_crl_number=None)


def _unlisted_ends(authority: CertificateAuthority, now: datetime) -> QuerySet[EndedHold]:
    """Holds that lists have shown, but not yet their end."""
    since = now - settings.CRL_VALIDITY
    shown = EndedHold.objects.filter(hold_crl_number__isnull=False, end_crl_number=None)
    return shown.filter(authority=authority, certificate__expires_at__gte=since)
