"""Lists in the database: revoked certificates read as a stream, signed lists written in parts.

Neither takes more memory for a longer list. (A COPY of the parts would: libpq keeps what the server has not
taken yet.)
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from certificates.crl import PIECE, CrlWindow, ListDraft, ListScope
from certificates.models import CertificateAuthority, RevocationList, RevocationListPart
from compliance import environments, sql

KEPT_BODIES: Final = 2
"""Of each scope: the newest, and the one before it, which somebody may still be reading."""
READ_TIMEOUT: Final = "10min"
AT_ONCE: Final = 4_096
"""Entries that the server puts together and sends as one row: a row for each would cost microseconds here."""

_READ = """
COPY (
    SELECT count(*), string_agg(crl_entry, ''::bytea) FROM (
        SELECT crl_entry, row_number() OVER () / %(at_once)s AS chunk FROM ({lines}) AS lines
    ) AS numbered GROUP BY chunk
) TO STDOUT (FORMAT BINARY)
"""
_REVOKED = """
SELECT crl_entry FROM certificates_certificate
WHERE authority_id = %(authority)s AND status = 'revoked' AND expires_at >= %(oldest_end)s
    AND first_crl_number <= %(number)s AND first_crl_number > %(base)s
"""
_OF_SHARD = "AND crl_shard = %(shard)s"
# Of a certificate whose hold ended since the base: the line by which it stands now, or its removal. One that
# was first listed since the base is among the revoked already.
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


@dataclass(frozen=True)
class Selection:
    """Which revoked certificates a list carries: those of its rounds that had not expired long before.

    With a base, what has changed since it: the holds that have ended too.
    """

    authority: CertificateAuthority
    number: int
    oldest_end: datetime
    base_number: int = 0
    shard: int | None = None


def read_entries(selection: Selection, draft: ListDraft) -> None:
    """Put the selected certificates on a list, as one snapshot sees them."""
    of_shard = "" if selection.shard is None else _OF_SHARD
    ended_holds = _ENDED_HOLDS if selection.base_number else ""
    statement = _READ.format(lines=f"{_REVOKED} {of_shard} {ended_holds}")
    params = {
        "authority": selection.authority.id,
        "oldest_end": selection.oldest_end,
        "number": selection.number,
        "base": selection.base_number,
        "shard": selection.shard,
        "at_once": AT_ONCE,
    }
    with environments.atomic():
        sql.execute(f"SET LOCAL statement_timeout = '{READ_TIMEOUT}'")
        with sql.driver_cursor() as cursor, cursor.copy(statement, params) as copy:
            copy.set_types(["int8", "bytea"])
            for count, octets in copy.rows():
                draft.add_encoded(octets, count)


def store(
    *,
    authority: CertificateAuthority,
    scope: ListScope,
    window: CrlWindow,
    entry_count: int,
    pieces: Iterable[bytes],
) -> RevocationList:
    """Keep a signed list as the newest of its scope; called in a transaction, under the CA's row lock."""
    made = RevocationList.objects.create(
        authority=authority,
        scope=scope.name,
        number=window.number,
        base_number=scope.base_number,
        this_update=window.this_update,
        next_update=window.next_update,
        entry_count=entry_count,
    )
    with sql.driver_cursor() as cursor:
        for position, piece in enumerate(_gathered(pieces)):
            cursor.execute(_WRITE, (made.id, position, piece))
            made.size += len(piece)
    made.save(update_fields=["size"])
    _forget_old(made)
    return made


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same octets in parts of a piece's size at least, so that a short list is one part."""
    part = b""
    for piece in pieces:
        part += piece
        if len(part) >= PIECE:
            yield part
            part = b""
    if part:
        yield part


def _forget_old(newest: RevocationList) -> None:
    """Rows stay while their list counts, for the deltas to it; octets only while they may be asked for."""
    lists = RevocationList.objects.filter(authority=newest.authority_id, scope=newest.scope)
    kept = list(lists.order_by("-number").values_list("id", flat=True)[:KEPT_BODIES])
    stale = lists.exclude(id__in=kept)
    RevocationListPart.objects.filter(revocation_list__in=stale).delete()
    stale.filter(next_update__lt=newest.this_update).delete()
