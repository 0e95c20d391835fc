"""Revocation lists in the database: reading the entries of a list, and storing the signed octets in parts."""

from dataclasses import asdict
from datetime import timedelta
from typing import Final

from certificates.lists.crl import CrlWindow, ListScope
from certificates.models import CertificateAuthority, RevocationList, RevocationListPart
from compliance.core import environments
from compliance.stores import sql

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


def store(
    *, authority: CertificateAuthority, window: CrlWindow, scope: ListScope, entry_count: int, der: bytes
) -> RevocationList:
    """Store a signed list as the newest of its scope; called in a transaction, under the CA's row lock."""
    made = RevocationList.objects.create(
        authority=authority,
        scope=scope.name,
        base_number=scope.base_number,
        **asdict(window),
        entry_count=entry_count,
        size=len(der),
    )
    with sql.driver_cursor() as cursor:
        for position, start in enumerate(range(0, len(der), PART_OCTETS)):
            cursor.execute(_WRITE, (made.id, position, der[start : start + PART_OCTETS]))
    _delete_old(made)
    return made


def _delete_old(newest: RevocationList) -> None:
    """Delete octets that no client can ask for, and rows whose list no delta has as its base."""
    lists = RevocationList.objects.filter(authority=newest.authority_id, scope=newest.scope)
    kept = list(lists.order_by("-number").values_list("id", flat=True)[:KEPT_BODIES])
    stale = lists.exclude(id__in=kept)
    RevocationListPart.objects.filter(revocation_list__in=stale).delete()
    stale.filter(next_update__lt=newest.this_update).delete()
