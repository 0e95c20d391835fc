"""Erase the personal parts of an entry; its leaf, and every proof of it, stay."""

from collections.abc import Collection
from datetime import datetime
from typing import Final
from uuid import UUID

from auditlog import services as auditlog
from auditlog.errors import EntryNotFound, NotSealedYet, TreeDamaged
from auditlog.leaves import ERASABLE
from auditlog.models import AuditEntry
from auditlog.sealing.sealer import LOCK
from auditlog.sealing.stored_rows import sealed_entry_of
from auditlog.sealing.tree import StoredTiles
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.errors import Invalid
from compliance.stores import sql, wakeups

RECORDS = frozenset({AuditAction.AUDIT_ERASED, AuditAction.AUDIT_DROPPED})
"""Entries that tell why contents are missing: verification needs what they name."""
ERASE: Final = "SELECT auditlog_erase(%s, %s, %s, %s::jsonb)"


def erase(
    *, entry_id: UUID, parts: Collection[str] = ERASABLE, reason: str, actor: Actor, now: datetime
) -> list[str]:
    """Erase these parts of a sealed entry and their salts, and record it; return the parts that were there.

    Their commitments stay, and without the salts nothing can be guessed from them. Raises: EntryNotFound,
    NotSealedYet, TreeDamaged if the entry was tampered with, Invalid for a part that is not one of
    `leaves.ERASABLE`.
    """
    if unknown := set(parts) - set(ERASABLE):
        raise Invalid(f"Not a part that can be erased: {', '.join(sorted(unknown))}")
    with environments.atomic():
        # A second erasure of the entry waits here until the first has committed.
        sql.query("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [LOCK, str(entry_id)])
        sealed = sealed_entry_of(entry_id)
        if sealed is None:
            raise NotSealedYet() if AuditEntry.objects.filter(id=entry_id).exists() else EntryNotFound()
        if sealed.row.event_type in RECORDS and set(parts) & {"affected_id", "metadata"}:
            raise Invalid("A record of an erasure or a drop keeps its affected_id and metadata")
        found = [part for part in ERASABLE if part in parts and part not in sealed.erased]
        if found:
            if StoredTiles().leaf(sealed.index) != sealed.hash():
                text = f"The entry at index {sealed.index} is not as it was sealed: run audit_verify"
                raise TreeDamaged(text)
            told = auditlog.entry(
                tenant_id=UUID(sealed.row.tenant_id),
                action=AuditAction.AUDIT_ERASED,
                affected_id=entry_id,
                description=reason,
                metadata={"index": sealed.index, "parts": found},
                actor=actor,
                now=now,
            )
            sql.query(ERASE, [entry_id, found, sealed.leaf(), auditlog.as_json(told)])
            wakeups.ask_for_on_commit(auditlog.SEAL)
    return found
