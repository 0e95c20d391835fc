"""A gunicorn worker that serves a WSGI application, or one with a fast path, from an event loop."""

import asyncio
import os
import signal
import time
from typing import Any

import uvloop
from django.conf import settings
from gunicorn.workers.base import Worker

from compliance.api.answers import Answer
from compliance.core import patience
from compliance.observing.request_counts import UNROUTED, loop_counts, note_refused
from compliance.serving.django_process import DjangoLost, DjangoProcess, ForkedDjango, ThreadedDjango
from compliance.serving.http import refusals
from compliance.serving.http.listener import Listener
from compliance.serving.http.messages import Received
from compliance.serving.server import LoopEntrance, Server
from compliance.serving.site import Site
from compliance.serving.traffic import Traffic

HEARTBEAT_SECONDS = 1.0


class LoopWorker(Worker):
    """One process of the web server; gunicorn starts it, replaces it when it dies or hangs, and ends it."""

    def init_signals(self) -> None:
        """Leave signals to the event loop; until it runs they end the process."""
        for number in self.SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)

    def run(self) -> None:
        """Serve until gunicorn ends the worker or is gone itself, or the views' process has ended.

        The views' process inherits how long the worker waits for a database.
        """
        patience.limit_process(patience.SERVING_SECONDS)
        threads = settings.WEB_THREADS
        views: DjangoProcess
        fast_path: LoopEntrance | None = None
        if isinstance(self.wsgi, Site):
            site = self.wsgi
            views = ForkedDjango(
                site.application,
                threads=threads,
                startup=site.startup,
                inherited=[one.fileno() for one in self.sockets],
            )
            fast_path = site.fast_path()
        else:
            views = ThreadedDjango(self.wsgi, threads=threads)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve(Server(views, fast_path=fast_path)))

    async def _serve(self, server: Server) -> None:
        ended, traffic = asyncio.Event(), Traffic()

        async def answer(request: Received) -> Answer:
            began = time.perf_counter()
            found = await answered(request)
            seconds, at = time.perf_counter() - began, time.time()
            traffic.note(
                method=request.method, path=request.path, status=found.status, seconds=seconds, at=at
            )
            return found

        async def answered(request: Received) -> Answer:
            try:
                return await server.answer(request)
            except DjangoLost:
                # gunicorn starts another worker with views of its own.
                self.log.error("The views of worker %d have ended", self.pid)
                ended.set()
                loop_counts.note(method=request.method, route=UNROUTED, status=503, seconds=0.0)
                return refusals.FULL.at(request.path)

        listener = Listener(
            [one.sock for one in self.sockets],
            answer,
            largest_body=settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
            refused=note_refused,
            has_peers=self.cfg.workers > 1,
        )
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            loop.add_signal_handler(number, ended.set)
        server.warm()
        listener.start()
        self.log.info("Worker %d serves", self.pid)
        flushing = asyncio.gather(traffic.flush_until(ended), loop_counts.flush_until(ended))
        await self._beat_until(ended)
        await listener.stop(within=self.cfg.graceful_timeout)
        await flushing
        await traffic.flush()
        loop_counts.flush()
        await server.close()

    async def _beat_until(self, ended: asyncio.Event) -> None:
        """Tell gunicorn once a second that the loop turns; return when it asks to end or has died."""
        while not ended.is_set() and os.getppid() == self.ppid:
            self.notify()
            waiting: asyncio.Task[Any] = asyncio.ensure_future(ended.wait())
            await asyncio.wait([waiting], timeout=HEARTBEAT_SECONDS)
            waiting.cancel()
