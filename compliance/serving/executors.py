"""Who works on the questions of the fast path: the event loop, and threads."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Barrier
from typing import Any
from uuid import UUID

from django.core.exceptions import SynchronousOnlyOperation
from django.db import DatabaseError, InterfaceError, close_old_connections, connections

from compliance.api.endpoint import Deferred, Endpoint, LoopEndpoint
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.core.shares import SharedSlots
from compliance.serving.batching import Batcher
from compliance.stores.asking import LoopAsker

log = logging.getLogger(__name__)

DEFERRED_THREADS = 4  # threads of an environment for questions that take longer than their group
SHARE = 2  # those threads that one tenant may have
WAIT_SECONDS = 2.0  # how long a question waits for one of them
MOST_DEFERRED = 200  # questions of one tenant that may wait for one


class DeferredThreads:
    """One environment's threads for slow questions of all endpoints, of which a tenant has its share."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(DEFERRED_THREADS, thread_name_prefix="fast-path-deferred")
        self._slots = SharedSlots(DEFERRED_THREADS, share=SHARE, longest_queue=MOST_DEFERRED)

    async def run(self, tenant_id: UUID | None, work: Callable[..., Any], *args: Any) -> Any:
        """Do the work of a tenant in one of the threads. Raises: AllTaken, what the work raises."""
        with await self._slots.wait(tenant_id, seconds=WAIT_SECONDS):
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    async def close(self) -> None:
        await asyncio.to_thread(_end, self._threads, DEFERRED_THREADS)


class Work:
    """Has an endpoint's questions answered in groups, by a thread or, without the ORM, by the loop."""

    def __init__(
        self, endpoint: Endpoint[Any, Any], environment: Environment, deferred: DeferredThreads
    ) -> None:
        self._endpoint = endpoint
        self._environment = environment
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="fast-path")
        self._deferred = deferred
        self._asker = LoopAsker(environment)
        self._groups = Batcher[Any, Any](
            self._outcomes,
            largest=endpoint.largest_group,
            longest_queue=endpoint.longest_queue,
            name=endpoint.route,
            worth=endpoint.worth_a_group,
            longest_gathering=endpoint.longest_gathering,
        )

    async def ask(self, question: Any, tenant_id: UUID | None) -> Any:
        outcome = await self._groups.ask(question)
        if not isinstance(outcome, Deferred):
            return outcome
        # Alone it belongs to one request, whose ids its entries and messages name.
        run = copy_context().run
        outcome = await self._deferred.run(tenant_id, run, self._run, outcome.work)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def close(self) -> None:
        await self._groups.finish()
        await asyncio.to_thread(_end, self._thread, 1)
        await self._asker.close()

    async def _outcomes(self, questions: Sequence[Any]) -> Sequence[Any]:
        try:
            if isinstance(self._endpoint, LoopEndpoint):
                with suppress(SynchronousOnlyOperation), environments.use(self._environment):
                    return await self._asker.run(partial(self._endpoint.answer, questions))
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, self._run, self._endpoint.work, questions)
        except (DatabaseError, InterfaceError) as error:
            log.warning(
                "%d requests of %s failed: %s", len(questions), self._endpoint.path, type(error).__name__
            )
            return [error] * len(questions)

    def _run(self, work: Callable[..., Any], *args: Any) -> Any:
        # As Django does between requests: a connection that died meanwhile is replaced.
        close_old_connections()
        with environments.use(self._environment):
            return work(*args)


def _end(threads: ThreadPoolExecutor, count: int) -> None:
    """Close the database connections of each of the `count` threads, and end them."""
    together = Barrier(count)

    def close() -> None:
        together.wait()  # so that no thread does it twice
        connections.close_all()

    for _ in range(count):
        threads.submit(close)
    threads.shutdown()
