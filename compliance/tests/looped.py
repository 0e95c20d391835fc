"""A script called from the event loop for as long as a test needs it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from compliance.stores import redis


@asynccontextmanager
async def opened(script: redis.Script) -> AsyncIterator[redis.AsyncScript]:
    client = redis.AsyncClient()
    try:
        yield redis.AsyncScript(script, client)
    finally:
        await client.close()
