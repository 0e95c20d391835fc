"""A client of Redis in the event loop for as long as a test needs it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from compliance.stores import redis


@asynccontextmanager
async def opened() -> AsyncIterator[redis.AsyncClient]:
    client = redis.AsyncClient()
    try:
        yield client
    finally:
        await client.close()
