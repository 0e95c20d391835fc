"""A script's connection of the event loop for as long as a test needs it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from compliance import redis
from compliance.loop_redis import LoopScript


@asynccontextmanager
async def opened(script: redis.Script) -> AsyncIterator[LoopScript]:
    looped = LoopScript(script)
    try:
        yield looped
    finally:
        looped.close()
