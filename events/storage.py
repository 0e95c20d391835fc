"""Writing events: any number of rows in one COPY, by far PostgreSQL's cheapest way in."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from compliance import sql
from events.models import BehaviorEvent
from events.scoring import Reason


class ScoredEvent(msgspec.Struct, frozen=True, gc=False):
    """An event with its verdict: a row of `BehaviorEvent`, attribute for attribute, ids as text."""

    id: str
    tenant_id: str
    agent_id: str
    action_type: str
    risk_score: float
    risk_band: str
    occurred_at: datetime
    received_at: datetime
    details: dict[str, Any]
    session_id: str | None
    chain_id: str | None
    reasons: tuple[Reason, ...]
    model_version: str


_COPY = f"COPY {BehaviorEvent._meta.db_table} ({', '.join(ScoredEvent.__struct_fields__)}) FROM STDIN"
_NULL = b"\\N"
_encode = msgspec.json.Encoder().encode


def insert(events: Sequence[ScoredEvent]) -> None:
    """Store the events, all or none; durable on return outside a transaction.

    Raises Django's `OperationalError` when PostgreSQL is away.
    """
    text = b"".join(_lines(events))
    with sql.driver_cursor() as cursor, cursor.copy(_COPY) as copy:
        copy.write(text)


def _lines(events: Iterable[ScoredEvent]) -> Iterable[bytes]:
    """COPY's text format: tabs between columns, backslashes doubled."""
    moments: dict[datetime, str] = {}
    for event in events:
        received = moments.get(event.received_at)
        if received is None:
            received = moments[event.received_at] = event.received_at.isoformat()
        occurred = received if event.occurred_at == event.received_at else event.occurred_at.isoformat()
        yield b"\t".join((
            f"{event.id}\t{event.tenant_id}\t{event.agent_id}\t{event.action_type}\t{event.risk_score!r}"
            f"\t{event.risk_band}\t{occurred}\t{received}".encode(),
            _json(event.details),
            _NULL if event.session_id is None else _text(event.session_id),
            _NULL if event.chain_id is None else event.chain_id.encode(),
            _json(event.reasons),
            event.model_version.encode() + b"\n",
        ))  # fmt: skip


def _json(value: Any) -> bytes:
    text = _encode(value)
    return text.replace(b"\\", b"\\\\") if b"\\" in text else text


def _text(value: str) -> bytes:
    """A string as COPY takes it."""
    plain = value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    return plain.encode()
