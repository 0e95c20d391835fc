"""FastAPI and asyncpg: one insert for each event (or for each batch), and none of the service's checks.

As a good engineer writes it: a typed model, a pool, prepared statements, orjson, uvloop. It authenticates
nobody, limits nothing, knows no agent and scores nothing: it is the price of HTTP, validation and INSERT.
"""

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import asyncpg
import orjson
from fastapi import FastAPI, Request, Response
from pydantic import BaseModel

TENANT = UUID(os.environ["RULER_TENANT"])
COLUMNS = (
    "id, tenant_id, agent_id, action_type, risk_score, risk_band, occurred_at, received_at, details, "
    "session_id, chain_id, reasons, model_version"
)
ONE = f"INSERT INTO ruler_fastapi ({COLUMNS}) VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13)"
MANY = f"""
INSERT INTO ruler_fastapi ({COLUMNS})
SELECT id, $2, agent_id, action_type, 0.05, 'low', occurred_at, $6, details, session_id, chain_id, '[]',
  'none'
FROM unnest($1::uuid[], $3::uuid[], $4::text[], $5::timestamptz[], $7::jsonb[], $8::text[], $9::uuid[])
  AS given (id, agent_id, action_type, occurred_at, details, session_id, chain_id)
"""


class ActionType(StrEnum):
    """What an agent can report."""

    API_CALL = "api_call"
    AUTHENTICATION_ATTEMPT = "authentication_attempt"
    AUTHENTICATION_FAILURE = "authentication_failure"
    DATA_ACCESS = "data_access"
    DATA_MUTATION = "data_mutation"
    TRANSACTION_INITIATED = "transaction_initiated"
    TRANSACTION_ANOMALY = "transaction_anomaly"
    UNAUTHORIZED_ACCESS_ATTEMPT = "unauthorized_access_attempt"
    MESSAGE_SIGNED = "message_signed"
    MESSAGE_VERIFICATION_FAILED = "message_verification_failed"


class Event(BaseModel):
    """One reported action."""

    agent_id: UUID
    action_type: ActionType
    details: dict[str, Any] = {}
    occurred_at: datetime | None = None
    session_id: str | None = None
    chain_id: UUID | None = None


class Batch(BaseModel):
    """Many of them."""

    events: list[Event]


@asynccontextmanager
async def pooled(app: FastAPI) -> AsyncIterator[None]:
    """The pool of connections while the application runs."""
    size = int(os.environ["POOL_SIZE"])
    async with asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=size, max_size=size) as pool:
        app.state.pool = pool
        yield


app = FastAPI(lifespan=pooled)


def new_id() -> UUID:
    """A UUIDv7 (RFC 9562), made quickly."""
    number = (time.time_ns() // 1_000_000 << 80) | int.from_bytes(os.urandom(10))
    return UUID(int=number & ~(0xF000 << 64) & ~(0xC000 << 48) | 0x7000 << 64 | 0x8000 << 48)


def answer(event_id: UUID, event: Event, occurred_at: datetime) -> dict[str, Any]:
    """An event as the service would show it."""
    return {
        "id": event_id, "agent_id": event.agent_id, "action_type": event.action_type, "risk_score": 0.05,
        "risk_band": "low", "occurred_at": occurred_at, "details": event.details,
    }  # fmt: skip


def created(content: Any) -> Response:
    """201 with the data envelope."""
    return Response(orjson.dumps({"data": content}), status_code=201, media_type="application/json")


@app.post("/v1/events")
async def record(event: Event, request: Request) -> Response:
    """Store one event."""
    now = datetime.now(UTC)
    event_id, occurred_at = new_id(), event.occurred_at or now
    await request.app.state.pool.execute(
        ONE,
        *(event_id, TENANT, event.agent_id, event.action_type, 0.05, "low", occurred_at, now),
        *(orjson.dumps(event.details).decode(), event.session_id, event.chain_id, "[]", "none"),
    )
    return created(answer(event_id, event, occurred_at))


@app.post("/v1/events/batch")
async def record_batch(batch: Batch, request: Request) -> Response:
    """Store many events with one statement."""
    now, events = datetime.now(UTC), batch.events
    ids = [new_id() for _ in events]
    times = [event.occurred_at or now for event in events]
    await request.app.state.pool.execute(
        MANY,
        *(
            ids, TENANT, [event.agent_id for event in events], [event.action_type for event in events], times,
            now,
        ),
        *([orjson.dumps(event.details).decode() for event in events], [event.session_id for event in events]),
        [event.chain_id for event in events],
    )  # fmt: skip
    return created([answer(*row) for row in zip(ids, events, times, strict=True)])
