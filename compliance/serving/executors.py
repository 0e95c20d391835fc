"""Who works on the questions of the fast path: connections of the event loop, and threads."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from contextvars import copy_context
from threading import Barrier
from typing import Any
from uuid import UUID
from weakref import WeakValueDictionary

from django.core.exceptions import SynchronousOnlyOperation
from django.db import DatabaseError, InterfaceError, close_old_connections, connections

from compliance.api.endpoint import Deferred, Endpoint, ReadEndpoint, SteppedEndpoint, ThreadEndpoint
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.serving.batching import Batcher, QueueFull
from compliance.stores.async_postgres import AsyncReader, Rows
from compliance.stores.trips import LoopTrips

log = logging.getLogger(__name__)

CONNECTIONS = 4  # questions of one environment that are read at once where each is asked alone
SHARE = 2  # the connections, or threads of deferred work, that one tenant may have
WAIT_SECONDS = 2.0  # how long a question waits for one of the connections
MOST_DEFERRED = 200  # questions of one tenant that may wait for such a thread
DEFERRED_THREADS = 4  # threads of an environment for questions that take longer than their group
CALLING_THREADS = 6
"""Threads of an environment, apart from those, for questions that may wait for a tenant's own server: more
than wait for such servers at once, so that slow ones hold up nobody else."""


class GroupReads:
    """Answers the questions of a `ReadEndpoint` in one environment in groups, over one connection."""

    def __init__(self, endpoint: ReadEndpoint[Any, Any], environment: Environment) -> None:
        self._endpoint = endpoint
        self._reader = AsyncReader(environment)
        self._groups = Batcher[Any, Any](
            self._outcomes,
            largest=endpoint.largest_group,
            longest_queue=endpoint.longest_queue,
            name=endpoint.route,
        )

    async def ask(self, question: Any, tenant_id: UUID | None) -> Any:
        return await self._groups.ask(question)

    async def close(self) -> None:
        await self._groups.finish()
        await self._reader.close()

    async def _outcomes(self, questions: Sequence[Any]) -> Sequence[Any]:
        try:
            rows = await _read(self._endpoint, self._reader, questions)
        except (DatabaseError, InterfaceError) as error:
            return _failed(self._endpoint, questions, error)
        return self._endpoint.outcomes(questions, rows)


async def _read(endpoint: ReadEndpoint[Any, Any], reader: AsyncReader, questions: Sequence[Any]) -> Rows:
    """The rows of the questions. Raises: Django's errors."""
    rows = await reader.rows(endpoint.query(questions))
    rest = endpoint.second_query(questions, rows)
    return rows if rest is None else [*rows, *await reader.rows(rest)]


class TenantShares:
    """Bounds what each tenant has under way (`SHARE`) and waiting, so that no tenant waits for another."""

    def __init__(self, longest_queue: int) -> None:
        self._longest_queue = longest_queue
        self._shares: WeakValueDictionary[UUID | None, asyncio.Semaphore] = WeakValueDictionary()
        self._waiting: Counter[UUID | None] = Counter()

    @asynccontextmanager
    async def one_of(self, tenant_id: UUID | None, slots: asyncio.Semaphore) -> AsyncIterator[None]:
        """Hold one of the slots. Raises: QueueFull at once, or after WAIT_SECONDS."""
        if self._waiting[tenant_id] >= self._longest_queue:
            raise QueueFull
        share = self._shares.setdefault(tenant_id, asyncio.Semaphore(SHARE))
        self._waiting[tenant_id] += 1
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    await stack.enter_async_context(share)
                    await stack.enter_async_context(slots)
            except TimeoutError:
                raise QueueFull from None
            finally:
                self._waiting -= Counter([tenant_id])  # drops names whose count is 0
            yield


class SharedReads:
    """Answers each question of a `ReadEndpoint` in one environment alone, over connections tenants share."""

    def __init__(self, endpoint: ReadEndpoint[Any, Any], environment: Environment) -> None:
        self._endpoint = endpoint
        # The last one used is the next, so that the others need not even connect.
        self._readers = [AsyncReader(environment) for _ in range(CONNECTIONS)]
        self._idle = [*self._readers]
        self._free = asyncio.Semaphore(CONNECTIONS)
        self._shares = TenantShares(endpoint.longest_queue)

    async def ask(self, question: Any, tenant_id: UUID | None) -> Any:
        async with self._shares.one_of(tenant_id, self._free):
            return await self._outcome(question)

    async def close(self) -> None:
        for reader in self._readers:
            await reader.close()

    async def _outcome(self, question: Any) -> Any:
        reader = self._idle.pop()
        try:
            rows = await _read(self._endpoint, reader, [question])
        finally:
            self._idle.append(reader)
        (outcome,) = self._endpoint.outcomes([question], rows)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class DeferredThreads:
    """The threads of one environment for questions that take longer than their group, of several endpoints.

    A tenant has its share of them, whatever endpoints it asks.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="fast-path-deferred")
        self._free = asyncio.Semaphore(count)
        self._shares = TenantShares(MOST_DEFERRED)

    async def run(self, tenant_id: UUID | None, work: Callable[..., Any], *args: Any) -> Any:
        """Do the work of a tenant in one of the threads. Raises: QueueFull, what the work raises."""
        async with self._shares.one_of(tenant_id, self._free):
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    async def close(self) -> None:
        await asyncio.to_thread(_end, self._threads, self._count)


class ThreadWork:
    """Has the work of a `ThreadEndpoint` in one environment done by a thread, group by group."""

    def __init__(
        self,
        endpoint: ThreadEndpoint[Any, Any],
        environment: Environment | None,
        deferred: DeferredThreads,
    ) -> None:
        self._endpoint = endpoint
        self._environment = environment
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="fast-path")
        self._deferred = deferred
        self._groups = Batcher[Any, Any](
            self._outcomes,
            largest=endpoint.largest_group,
            longest_queue=endpoint.longest_queue,
            name=endpoint.route,
            worth=endpoint.worth_a_group,
            longest_gathering=endpoint.longest_gathering,
        )

    def warm(self) -> None:
        self._thread.submit(self._run, self._endpoint.warm)

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

    async def _outcomes(self, questions: Sequence[Any]) -> Sequence[Any]:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, self._run, self._endpoint.work, questions)
        except (DatabaseError, InterfaceError) as error:
            return _failed(self._endpoint, questions, error)

    def _run(self, work: Callable[..., Any], *args: Any) -> Any:
        # As Django does between requests: a connection that died meanwhile is replaced.
        close_old_connections()
        with nullcontext() if self._environment is None else environments.use(self._environment):
            return work(*args)


class LoopWork(ThreadWork):
    """Has the work of a `SteppedEndpoint` done by the event loop, or by the thread if a step uses the ORM."""

    def __init__(
        self,
        endpoint: SteppedEndpoint[Any, Any],
        environment: Environment,
        deferred: DeferredThreads,
    ) -> None:
        super().__init__(endpoint, environment, deferred)
        self._environment: Environment = environment
        self._steps = endpoint.steps
        self._trips = LoopTrips(environment)

    async def close(self) -> None:
        await super().close()
        await self._trips.close()

    async def _outcomes(self, questions: Sequence[Any]) -> Sequence[Any]:
        try:
            with environments.use(self._environment):
                return await self._trips.run(self._steps(questions))
        except SynchronousOnlyOperation:
            return await super()._outcomes(questions)
        except (DatabaseError, InterfaceError) as error:
            return _failed(self._endpoint, questions, error)


def _end(threads: ThreadPoolExecutor, count: int) -> None:
    """Close the database connections of each of the `count` threads, and end them."""
    together = Barrier(count)

    def close() -> None:
        together.wait()  # so that no thread does it twice
        connections.close_all()

    for _ in range(count):
        threads.submit(close)
    threads.shutdown()


class Executors:
    """The workers of all endpoints in each environment, made when they are first needed."""

    def __init__(self) -> None:
        self._executors: dict[tuple[type, Environment | None], GroupReads | SharedReads | ThreadWork] = {}
        self._deferred: dict[tuple[Environment | None, bool], DeferredThreads] = {}

    def warm(self, endpoint: Endpoint[Any, Any]) -> None:
        """Start what the first question of the live environment would wait for."""
        if isinstance(endpoint, ThreadEndpoint) and endpoint.scope is not None:
            worker = self._of(endpoint, Environment.LIVE)
            if isinstance(worker, ThreadWork):
                worker.warm()

    async def ask(
        self,
        endpoint: Endpoint[Any, Any],
        environment: Environment | None,
        question: Any,
        tenant_id: UUID | None,
    ) -> Any:
        """The outcome of a question. Raises: QueueFull, ServiceError, Django's errors."""
        return await self._of(endpoint, environment).ask(question, tenant_id)

    async def close(self) -> None:
        for worker in self._executors.values():
            await worker.close()
        for threads in self._deferred.values():
            await threads.close()

    def _of(
        self, endpoint: Endpoint[Any, Any], environment: Environment | None
    ) -> GroupReads | SharedReads | ThreadWork:
        name = type(endpoint), environment
        if name not in self._executors:
            self._executors[name] = self._made(endpoint, environment)
        return self._executors[name]

    def _made(
        self, endpoint: Endpoint[Any, Any], environment: Environment | None
    ) -> GroupReads | SharedReads | ThreadWork:
        if isinstance(endpoint, ThreadEndpoint):
            name = environment, endpoint.calls_tenants
            if name not in self._deferred:
                count = CALLING_THREADS if endpoint.calls_tenants else DEFERRED_THREADS
                self._deferred[name] = DeferredThreads(count)
            if isinstance(endpoint, SteppedEndpoint) and environment is not None:
                return LoopWork(endpoint, environment, self._deferred[name])
            return ThreadWork(endpoint, environment, self._deferred[name])
        if not isinstance(endpoint, ReadEndpoint) or environment is None:
            raise TypeError(f"{type(endpoint).__name__} reads rows of no environment")
        return (GroupReads if endpoint.largest_group > 1 else SharedReads)(endpoint, environment)


def _failed(endpoint: Endpoint[Any, Any], questions: Sequence[Any], error: Exception) -> list[Exception]:
    log.warning("%d requests of %s failed: %s", len(questions), endpoint.path, type(error).__name__)
    return [error] * len(questions)
