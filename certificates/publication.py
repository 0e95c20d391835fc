"""Publishing revocation lists in rounds: numbered strictly upwards, made only when due, never in a request.

A round of a CA makes its full list, the delta to it and, where they changed or have aged, its shards, all
under one number. Who holds the CA's lease makes it, in steps that each commit: take the number, mark what is
revoked as of this round, build and store list by list, close the round. What a crash left open is due again,
and what was marked for a round that never ended is on the next one.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models import F, Q

from auditlog import services as auditlog
from auditlog.vocabulary import SERVICE_TENANT_ID, Actor, AuditAction
from certificates.authorities import issuer_info, signing_key
from certificates.crl import DELTA, FULL, CrlWindow, ListDraft, ListScope, shard_name
from certificates.errors import ListBeingMade
from certificates.list_storage import Selection, read_entries, store
from certificates.models import (
    AuthorityRole,
    Certificate,
    CertificateAuthority,
    EndedHold,
    RevocationList,
)
from certificates.querysets import CertificateQuerySet, EndedHoldQuerySet
from compliance import environments
from compliance.identifiers import new_id

log = logging.getLogger(__name__)

PUBLISH: Final = "certificates.publish_crl"
MARK_BATCH: Final = 10_000
LEASE: Final = timedelta(seconds=60)
"""A maker that died is replaced after this; one that is merely slow finds its lease gone, and stores nothing.
"""
STORM: Final = timedelta(seconds=3)
RENEW_AT: Final = 0.5
"""A list is renewed after this share of its life, which leaves the other half to mend what hinders it."""


@dataclass(frozen=True)
class Lease:
    """The right to make one CA's lists, for `LEASE` from its beginning."""

    authority_id: UUID
    holder: UUID


@dataclass(frozen=True)
class Plan:
    """A round: which shards are made besides the full list, and the base of its delta."""

    authority: CertificateAuthority
    window: CrlWindow
    shards: tuple[int, ...]
    base_number: int | None


class LeaseLost(Exception):
    """Somebody else makes the lists by now."""


def publish(*, authority_id: UUID, actor: Actor, now: datetime, force: bool = False) -> RevocationList | None:
    """A round of one CA's lists if one is due (or `force`): the full list; else None.

    While somebody else makes them it is None too, or `ListBeingMade` with `force`. Raises `Unavailable` if
    the HSM does not answer.
    """
    if not force and not is_due(CertificateAuthority.objects.get(id=authority_id), now):
        return None
    lease = claim(authority_id=authority_id, now=now)
    if lease is None and force:
        raise ListBeingMade()
    if lease is None:
        return None
    return publish_claimed(lease=lease, actor=actor, now=now, force=force)


def publish_due(*, actor: Actor, now: datetime) -> int:
    """Publish what is due, of all CAs that sign lists; of how many. Raises `Unavailable` as `publish`."""
    ids = (
        CertificateAuthority.objects.publishing(now).order_by("created_at", "id").values_list("id", flat=True)
    )
    return sum(publish(authority_id=authority_id, actor=actor, now=now) is not None for authority_id in ids)


def lists_are_due(*, authority_id: UUID, now: datetime) -> bool:
    """`is_due` of a CA by its id."""
    return is_due(CertificateAuthority.objects.get(id=authority_id), now)


def has_fresh_list(*, authority_id: UUID, now: datetime) -> bool:
    """Whether the CA's full list is so new that a storm of revocations may be going on."""
    lists = RevocationList.objects.filter(authority=authority_id, scope=FULL)
    return lists.filter(this_update__gt=now - STORM).exists()


def claim_due_lists(*, authority_id: UUID, now: datetime) -> Lease | None:
    """The lease on a CA's lists if they are due and nobody holds it."""
    return (
        claim(authority_id=authority_id, now=now)
        if lists_are_due(authority_id=authority_id, now=now)
        else None
    )


def claim(*, authority_id: UUID, now: datetime) -> Lease | None:
    """The lease on a CA's lists; None while another holds it."""
    lease = Lease(authority_id, new_id())
    free = Q(crl_lease_until=None) | Q(crl_lease_until__lt=now)
    won = CertificateAuthority.objects.filter(free, id=authority_id).update(
        crl_lease_holder=lease.holder, crl_lease_until=now + LEASE
    )
    return lease if won else None


def publish_claimed(
    *, lease: Lease, actor: Actor, now: datetime, force: bool = False
) -> RevocationList | None:
    """As `publish`, by the holder of the lease, who gives it back."""
    try:
        plan = _begin(lease, now, force)
        return None if plan is None else _make_round(lease, plan, actor, now)
    except LeaseLost:
        log.warning("the lease on the lists of %s was lost", lease.authority_id)
        return None
    finally:
        CertificateAuthority.objects.filter(id=lease.authority_id, crl_lease_holder=lease.holder).update(
            crl_lease_holder=None, crl_lease_until=None
        )


def is_due(authority: CertificateAuthority, now: datetime) -> bool:
    """Whether a list is missing or has spent half its life, a round was not finished, or a revocation or the
    end of a hold is on none yet.
    """
    if authority.crl_completed != authority.crl_number:
        return True
    newest = _newest(authority)
    if {FULL, *_shard_names(authority)} - newest.keys():
        return True
    if any(_has_aged(found, now) for found in newest.values()):
        return True
    unpublished = (_listable(authority, now).unpublished(), _ended_holds(authority, now).unpublished())
    return any(rows.exists() for rows in unpublished)


def _begin(lease: Lease, now: datetime, force: bool) -> Plan | None:
    """Take the next number and mark what is revoked as of it."""
    with _holding(lease) as authority:
        if not force and not is_due(authority, now):
            return None
        newest = _newest(authority)
        CertificateAuthority.objects.filter(id=authority.id).update(crl_number=F("crl_number") + 1)
        authority.crl_number += 1
    moment = now.replace(microsecond=0)
    window = CrlWindow(authority.crl_number, moment, moment + settings.CRL_VALIDITY)
    _mark(authority, window)
    return Plan(
        authority, window, _shards_to_make(authority, newest, now, force), _base_number(authority, now)
    )


def _mark(authority: CertificateAuthority, window: CrlWindow) -> None:
    """Write the round's number on everything that its lists tell; what changes meanwhile stays due.

    1. Revocations and holds that are on no list yet.
    2. Ends of holds that are on no list yet.

    In this order: when a certificate is released and held again between the two steps, this round gets the
    end of its old hold and a later round the new hold. The other way round, this round would get the new hold
    and a later one the end of the old, as if the new one had ended.
    """
    unmarked = _listable(authority, window.this_update).unpublished()
    while True:
        batch = unmarked.order_by().values("id")[:MARK_BATCH]
        # Said again for a row that was released while this statement waited for it.
        marked = Certificate.objects.revoked().filter(id__in=batch).update(first_crl_number=window.number)
        if marked < MARK_BATCH:
            break
    ended = _ended_holds(authority, window.this_update).unpublished()
    EndedHold.objects.filter(id__in=ended.order_by().values("id")).update(end_crl_number=window.number)


def _shards_to_make(
    authority: CertificateAuthority, newest: dict[str, RevocationList], now: datetime, force: bool
) -> tuple[int, ...]:
    since = authority.crl_completed
    revoked = Certificate.objects.filter(authority=authority, status="revoked", first_crl_number__gt=since)
    ended = EndedHold.objects.filter(authority=authority, end_crl_number__gt=since)
    changed = {
        *revoked.order_by().values_list("crl_shard", flat=True).distinct(),
        *ended.order_by().values_list("certificate__crl_shard", flat=True).distinct(),
    }
    return tuple(
        shard
        for shard, name in enumerate(_shard_names(authority))
        if force or shard in changed or name not in newest or _has_aged(newest[name], now)
    )


def _base_number(authority: CertificateAuthority, now: datetime) -> int | None:
    """The oldest full list that still counts: whoever holds that or a later one can use the delta."""
    if authority.role == AuthorityRole.ROOT:
        return None
    full = RevocationList.objects.filter(authority=authority, scope=FULL, next_update__gt=now)
    return full.order_by("number").values_list("number", flat=True).first()


def _make_round(lease: Lease, plan: Plan, actor: Actor, now: datetime) -> RevocationList:
    """The full list last: whoever sees it finds the others there."""
    authority, issuer = plan.authority, issuer_info(plan.authority)
    is_root = authority.role == AuthorityRole.ROOT
    # The root's list has no distribution point: `openssl verify -crl_check_all` seeks the root itself on it
    # too, and a root names none. Nor has one that certificates of several shards are sought on.
    url = None if is_root or authority.crl_shards else authority.crl_url
    delta_url = None if is_root else f"{authority.crl_url}/{DELTA}"
    for shard in plan.shards:
        scope = ListScope.of_shard(shard, issuer.shard_url(shard))
        _make(lease, plan, scope, shard=shard)
    if plan.base_number is not None:
        _make(lease, plan, ListScope(DELTA, url, base_number=plan.base_number))
    else:
        # What a delta of before adds to is past its end.
        RevocationList.objects.filter(authority=authority, scope=DELTA).delete()
    full = _make(lease, plan, ListScope(FULL, url, delta_url))
    with _holding(lease) as authority:
        authority.crl_completed = plan.window.number
        authority.save(update_fields=["crl_completed"])
        _record(authority, full, plan, actor, now)
    return full


def _make(lease: Lease, plan: Plan, scope: ListScope, *, shard: int | None = None) -> RevocationList:
    """Build and sign outside any transaction, then store while the lease holds."""
    selection = Selection(
        plan.authority,
        plan.window.number,
        plan.window.this_update - settings.CRL_VALIDITY,
        scope.base_number or 0,
        shard,
    )
    with ListDraft() as draft:
        read_entries(selection, draft)
        pieces = draft.sign(
            window=plan.window,
            issuer=issuer_info(plan.authority),
            key=signing_key(plan.authority),
            scope=scope,
        )
        with _holding(lease) as authority:
            return store(
                authority=authority, scope=scope, window=plan.window, entry_count=draft.count, pieces=pieces
            )


@contextmanager
def _holding(lease: Lease) -> Iterator[CertificateAuthority]:
    """The CA's row, locked in a transaction; raises `LeaseLost`."""
    with environments.atomic():
        authority = CertificateAuthority.objects.locked().get(id=lease.authority_id)
        if authority.crl_lease_holder != lease.holder:
            raise LeaseLost()
        yield authority


def _newest(authority: CertificateAuthority) -> dict[str, RevocationList]:
    """The newest list of each scope, deltas left out: they age with the full list."""
    lists = RevocationList.objects.filter(authority=authority).exclude(scope=DELTA)
    return {found.scope: found for found in lists.order_by("scope", "-number").distinct("scope")}


def _has_aged(newest: RevocationList, now: datetime) -> bool:
    return now >= newest.this_update + (newest.next_update - newest.this_update) * RENEW_AT


def _shard_names(authority: CertificateAuthority) -> list[str]:
    return [shard_name(shard) for shard in range(authority.crl_shards)]


def _listable(authority: CertificateAuthority, now: datetime) -> CertificateQuerySet:
    return Certificate.objects.filter(authority=authority).listable(now, settings.CRL_VALIDITY)


def _ended_holds(authority: CertificateAuthority, now: datetime) -> EndedHoldQuerySet:
    """As `_listable`: of certificates that a list may still carry."""
    since = now - settings.CRL_VALIDITY
    return EndedHold.objects.filter(authority=authority, certificate__expires_at__gte=since)


def _record(
    authority: CertificateAuthority, full: RevocationList, plan: Plan, actor: Actor, now: datetime
) -> None:
    auditlog.record(
        tenant_id=SERVICE_TENANT_ID,
        action=AuditAction.CRL_PUBLISHED,
        affected_id=authority.id,
        description=f"Revocation list {full.number} of {authority.common_name} published",
        metadata={
            "number": full.number,
            "entries": full.entry_count,
            "next_update": full.next_update.isoformat(),
            "shards": list(plan.shards),
        },
        actor=actor,
        now=now,
    )
