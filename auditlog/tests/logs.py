"""A log to tamper with: the changes that the owner of its tables can make."""

import json
from datetime import datetime
from typing import Any

from auditlog import services
from auditlog.leaves import PARTS, VERSION, EntryRow, leaf_data
from auditlog.models import AuditEntry
from auditlog.sealing.stored_rows import sealed_between
from auditlog.sealing.tree import head
from auditlog.tests.factories import make_log_key, seal_and_sign
from auditlog.tests.log_keys import root_of
from auditlog.tlog.tiles import extended
from auditlog.verifying.findings import Verdict, recomputed
from auditlog.verifying.live_log import Demands, verify_log
from auditlog.vocabulary import Actor, ActorKind, AuditAction
from compliance.core.clock import now
from compliance.core.identifiers import new_id
from compliance.stores import sql

TABLES = ("auditentry", "leaf", "tile", "treehead", "signedhead")
METADATA: list[dict[str, Any] | None] = [
    None,
    {"risk_score": 0.91, "reasons": ["new_place"], "größe": "naïve 😀"},
    {"serial_number": "0a1b", "count": 3, "big": 10**30, "tiny": 1e-7},
]


def make_log(count: int, *, tenant_id: Any = None, at: datetime | None = None) -> list[AuditEntry]:
    """Record, seal and sign so many entries; the current environment's log before them is sealed too."""
    tenant_id = tenant_id or new_id()
    entries = [
        services.record(
            tenant_id=tenant_id,
            action=AuditAction.AGENT_UPDATED if number % 2 else AuditAction.DELEGATION_ISSUED,
            affected_id=f"agent-{number}",
            description=f"=cmd|'{number}'" if number % 3 else None,
            metadata=METADATA[number % 3],
            actor=Actor(ActorKind.API_KEY, f"api_key:{number}"),
            now=at or now(),
        )
        for number in range(count)
    ]
    seal_and_sign()
    return entries


def empty_log() -> None:
    """Do as an owner who tampers: disable the triggers but for that of the queue, and delete everything."""
    make_log_key()
    sql.execute("DELETE FROM auditlog_pendingentry")
    for table in TABLES:
        sql.execute(f"ALTER TABLE auditlog_{table} DISABLE TRIGGER USER")
        if table != "treehead":
            sql.execute(f"DELETE FROM auditlog_{table}")  # noqa: S608
    sql.execute("ALTER TABLE auditlog_auditentry ENABLE TRIGGER auditlog_enqueue")
    sql.execute("UPDATE auditlog_treehead SET size = 0, root = sha256(''), minimum_index = 0")


def entry_at(index: int) -> str:
    """Return the id of the entry at a place."""
    return sealed_between(index, index + 1)[0].row.id


def roll_back(size: int, *, keep_checkpoints: bool = False) -> None:
    """Make the tree what it was when it had `size` leaves."""
    sql.execute(
        "DELETE FROM auditlog_auditentry e USING auditlog_leaf l WHERE e.id = l.entry_id AND l.index >= %s",
        [size],
    )
    sql.execute("DELETE FROM auditlog_leaf WHERE index >= %s", [size])
    rebuild_tree(size)
    if not keep_checkpoints:
        sql.execute("DELETE FROM auditlog_signedhead WHERE size > %s", [size])


def rebuild_tree(size: int) -> None:
    hashes = list(recomputed(0, size).values())
    sql.execute("DELETE FROM auditlog_tile")
    for (level, index), tile in extended(0, {}, hashes).items():
        sql.execute(
            "INSERT INTO auditlog_tile (level, index, hashes) VALUES (%s, %s, %s)", [level, index, tile]
        )
    sql.execute("UPDATE auditlog_treehead SET size = %s, root = %s", [size, root_of(hashes)])


def erase(index: int, part: str, shown: str) -> str:
    """Erase a part as `auditlog_erase` does; return the id of the entry."""
    sealed = sealed_between(index, index + 1)[0]
    place = {"actor_id": 1, "affected_id": 2, "description": 3, "metadata": 4}[part] * 16
    salts = sealed.salts[:place] + bytes(16) + sealed.salts[place + 16 :]
    kept = json.dumps({part: commitments(sealed.row, sealed.salts)[part]})
    sql.execute("UPDATE auditlog_leaf SET salts = %s, erased = %s WHERE index = %s", [salts, kept, index])
    statement = f"UPDATE auditlog_auditentry SET {part} = {shown} WHERE id = %s"  # noqa: S608
    sql.execute(statement, [sealed.row.id])
    return sealed.row.id


def record_erasure(entry_id: str, part: str) -> None:
    size = head().size
    (record,) = make_log(1, tenant_id=AuditEntry.objects.get(id=entry_id).tenant_id)
    sql.execute(
        "UPDATE auditlog_auditentry SET event_type = 'audit.erased', affected_id = %s, metadata = %s"
        " WHERE id = %s",
        [entry_id, json.dumps({"parts": [part]}), record.id],
    )
    sql.execute("DELETE FROM auditlog_signedhead WHERE size > %s", [size])
    rebuild_tree(size + 1)
    seal_and_sign()


def drop(until: int) -> None:
    sql.execute(
        "DELETE FROM auditlog_auditentry e USING auditlog_leaf l WHERE e.id = l.entry_id AND index < %s",
        [until],
    )
    sql.execute("DELETE FROM auditlog_leaf WHERE index < %s", [until])
    sql.execute("UPDATE auditlog_treehead SET minimum_index = %s", [until])


def verify(demands: Demands | None = None) -> Verdict:
    return verify_log(demands=demands or Demands(), tell=lambda done, size, seconds: None, now=now())


def commitments(row: EntryRow, salts: bytes) -> dict[str, str]:
    """Return the commitment to each part in hexadecimal."""
    data = leaf_data(row, salts)[len(VERSION) :]
    return {part: data[n * 32 : n * 32 + 32].hex() for n, part in enumerate(PARTS)}
