"""Answers whole requests: plain ones by the fast path in the event loop, all others by the application."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compliance.api.answers import Answer
from compliance.core.shares import AllTaken, SharedSlots
from compliance.observing import correlation
from compliance.observing.metrics import UNROUTED, note_answer
from compliance.serving.django_process import MOST_WAITING, DjangoLost, DjangoProcess
from compliance.serving.http import refusals
from compliance.serving.http.messages import Received
from compliance.serving.wsgi import Environ, WsgiApplication

if TYPE_CHECKING:
    from compliance.serving.fast_path import FastPath

log = logging.getLogger(__name__)

MOST_UNANSWERED = 128  # requests with the application or waiting for it; more are refused at once
BATCHES = frozenset({"/v1/events/batch", "/v1/otlp/v1/traces"})
"""The paths whose requests may take seconds: of one tenant one at a time is with the application."""
MOST_BATCHES = 4  # of all tenants
BATCH_WAIT_SECONDS = 15.0


@dataclass(frozen=True)
class Site:
    """What a worker serves: a WSGI application, and a fast path, which `fast_path` makes for each worker."""

    application: WsgiApplication
    fast_path: Callable[[], "FastPath"]

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        """The application alone; gunicorn serves nothing that cannot be called."""
        return self.application(environ, start_response)


class Server:
    """What answers the requests of one worker: the views, and before them the fast path, if there is one."""

    def __init__(self, views: DjangoProcess, *, fast_path: "FastPath | None") -> None:
        self._views = views
        self._fast_path = fast_path
        self._batches = SharedSlots(MOST_BATCHES, share=1, longest_queue=MOST_WAITING)
        self._unanswered = 0

    async def close(self) -> None:
        if self._fast_path is not None:
            await self._fast_path.close()
        self._views.close()

    async def answer(self, request: Received) -> Answer:
        """The answer to a request. Raises: DjangoLost when the application can give none any more."""
        with correlation.use(request.correlation):
            try:
                answer = None if self._fast_path is None else await self._fast_path.answer(request)
                return answer or await self._viewed(request)
            except DjangoLost:
                raise
            except Exception:
                log.exception("unexpected error on %s", request.path)
                return refused(request, refusals.FAILED)

    async def _viewed(self, request: Received) -> Answer:
        if self._unanswered >= MOST_UNANSWERED:
            return refused(request, refusals.FULL)
        is_batch = request.path in BATCHES
        self._unanswered += 1
        try:
            holder = request.address if self._fast_path is None else await self._fast_path.holder_of(request)
            if not is_batch:
                return await self._views.answer(request, holder)
            with await self._batches.wait(holder, seconds=BATCH_WAIT_SECONDS):
                return await self._views.answer(request, holder)
        except AllTaken:
            return refused(request, refusals.BATCHING if is_batch else refusals.FULL)
        finally:
            self._unanswered -= 1


def refused(request: Received, refusal: refusals.Refusal) -> Answer:
    note_answer(method=request.method, route=UNROUTED, status=refusal.status, seconds=0.0)
    return refusal.at(request.path)
