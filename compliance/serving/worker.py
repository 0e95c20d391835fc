"""A gunicorn worker that serves a `Site` from an event loop, and gunicorn's log lines."""

import asyncio
import logging.config
import os
import signal
from typing import TYPE_CHECKING, Any

import uvloop
from django.conf import settings
from gunicorn.glogging import Logger
from gunicorn.workers.base import Worker

from compliance.api.answers import Answer
from compliance.core import environments
from compliance.observing import metrics
from compliance.serving.django_process import DjangoLost, DjangoProcess
from compliance.serving.http import refusals
from compliance.serving.http.listener import Listener
from compliance.serving.http.messages import Received
from compliance.serving.server import Server, Site, refused

if TYPE_CHECKING:
    from compliance.serving.fast_path import FastPath

HEARTBEAT_SECONDS = 1.0


class ServerLog(Logger):
    """Hands gunicorn's lines to the handlers of the settings; there is no access log."""

    def setup(self, cfg: Any) -> None:
        self.loglevel = logging.INFO
        logging.config.dictConfig(settings.LOGGING)
        for one in (self.error_log, self.access_log):
            one.handlers.clear()
            one.propagate = one is self.error_log
        self.error_log.setLevel(self.loglevel)


class LoopWorker(Worker):
    """One process of the web server; gunicorn starts it, replaces it when it dies or hangs, and ends it."""

    def init_signals(self) -> None:
        """Leave signals to the event loop; until it runs they end the process."""
        for number in self.SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)

    def run(self) -> None:
        """Serve until gunicorn ends the worker or is gone, or the process of the views has ended."""
        environments.AnswerLimit.of_process = environments.SERVING_SECONDS
        site: Site = self.wsgi
        views = DjangoProcess.fork(
            site.application, threads=settings.WEB_THREADS, inherited=[one.fileno() for one in self.sockets]
        )
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve(views, site.fast_path()))

    async def _serve(self, views: DjangoProcess, fast_path: "FastPath") -> None:
        ended, server = asyncio.Event(), Server(views, fast_path=fast_path)

        async def answer(request: Received) -> Answer:
            try:
                return await server.answer(request)
            except DjangoLost:
                # gunicorn starts another worker with views of its own.
                self.log.error("The views of worker %d have ended", self.pid)
                ended.set()
                return refused(request, refusals.FULL)

        listener = Listener(
            [one.sock for one in self.sockets],
            answer,
            largest_body=settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
            refused=metrics.note_refused,
            has_peers=self.cfg.workers > 1,
        )
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            loop.add_signal_handler(number, ended.set)
        listener.start()
        self.log.info("Worker %d serves", self.pid)
        metrics.gather()
        # Tell gunicorn once a second that the loop turns, until it asks to end or has died.
        while not ended.is_set() and os.getppid() == self.ppid:
            self.notify()
            waiting: asyncio.Task[Any] = asyncio.ensure_future(ended.wait())
            await asyncio.wait([waiting], timeout=HEARTBEAT_SECONDS)
            waiting.cancel()
            metrics.flush()
        await listener.stop(within=self.cfg.graceful_timeout)
        await server.close()
        metrics.flush()
