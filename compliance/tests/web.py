"""A web worker inside the test's process: requests are handed to it whole, everything behind that is real."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from threading import Lock
from typing import Any

from django.db import connections

from compliance.api.answers import Answer, Headers
from compliance.observing import correlation
from compliance.serving.django_process import DjangoProcess, answer_of
from compliance.serving.endpoints import ENDPOINTS
from compliance.serving.fast_path import FastPath
from compliance.serving.http.messages import Received
from compliance.serving.server import Server
from compliance.serving.wsgi import Environ, OpenAnswer, WsgiApplication
from compliance.wsgi import application
from tenancy.key_lookup import KeyLookup


class ThreadedDjango(DjangoProcess):
    """An application in threads of this process, with each answer whole."""

    def __init__(self, application: WsgiApplication, *, threads: int) -> None:
        self._application = application
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="web")

    async def answer(self, request: Received, holder: Hashable) -> Answer:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._whole, request)

    def close(self) -> None:
        self._threads.shutdown(wait=True)

    def _whole(self, request: Received) -> Answer:
        found = answer_of(self._application, request)
        if not isinstance(found, OpenAnswer):
            return found
        try:
            return replace(found.head, body=b"".join(found.pieces))
        finally:
            found.close()


class Worker:
    """A server with the fast path or without; it counts what reaches the views."""

    def __init__(
        self, *, with_fast_path: bool = True, views: WsgiApplication = application, threads: int = 4
    ) -> None:
        self.seen_by_view = 0
        self._views = views
        self._lock = Lock()
        self._runner = asyncio.Runner()
        self.fast_path = FastPath(ENDPOINTS, KeyLookup()) if with_fast_path else None
        self._server = Server(ThreadedDjango(self._application, threads=threads), fast_path=self.fast_path)

    def close(self) -> None:
        self.run(self._server.close())
        self._runner.close()

    def run(self, play: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(play)

    def crowd(
        self, asks: Iterable[Coroutine[Any, Any, Answer]], *, held_up: AbstractContextManager[object]
    ) -> tuple[list[Answer], list[Answer]]:
        """Ask all at once while answers are held up: who was turned away meanwhile, and what all got."""

        async def begin() -> list[asyncio.Task[Answer]]:
            tasks = [asyncio.ensure_future(ask) for ask in asks]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0.2)
            return tasks

        async def finish(tasks: list[asyncio.Task[Answer]]) -> list[Answer]:
            return await asyncio.gather(*tasks)

        with held_up:
            tasks = self.run(begin())
            turned_away = [task.result() for task in tasks if task.done()]
        return turned_away, self.run(finish(tasks))

    async def exchange(self, method: str, path: str, headers: Headers, body: bytes = b"") -> Answer:
        """What the server answers."""
        path, _, query = path.partition("?")
        received = Received(method, path, query, headers, body, "127.0.0.1", ("127.0.0.1", 8000))
        return await self._server.answer(received._replace(correlation=correlation.begin(headers)))

    def _application(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        with self._lock:
            self.seen_by_view += 1
        try:
            return self._views(environ, start_response)
        finally:
            # The test's database can't be dropped while a thread holds on to it.
            connections.close_all()


def shape(answer: Answer, *, changing: Iterable[str] = ()) -> tuple[int, list[tuple[str, str]]]:
    """Status and headers, for comparison; of `changing` ones the value is left out."""
    names = [(name.lower(), "" if name.lower() in changing else value) for name, value in answer.headers]
    return answer.status, sorted(pair for pair in names if pair[0] != "content-length")
