"""Answers whole requests: an ordinary one in a lane of the event loop, every other one in a thread.

No thread waits for a body: a request comes here once all of it was received.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from compliance.api.answers import Answer
from compliance.api.lanes import Lane, Request
from compliance.serving import refusals
from compliance.serving.messages import Received
from compliance.serving.wsgi import Environ, WsgiApplication, environ_of, run

log = logging.getLogger(__name__)

DEFAULT_THREADS = 8
WAITING_PER_THREAD = 16
"""Requests that may wait for each thread, a fraction of a second's work; more are turned away at once."""
LARGEST_IN_LOOP = 8 * 1024
"""Octets of the largest body that a lane may be given: what it costs to read, the event loop stands still."""

CROWD = 3
"""Requests in a worker's threads at which one of their clients is asked to connect anew: the kernel gives
connections to workers by chance, and one worker may have most of them while another idles."""
PARTING_SECONDS = 0.25
"""How long a worker keeps all others then."""


@dataclass(frozen=True)
class Site:
    """A WSGI application, the lanes that lead past it, and what warms a process's threads.

    `lanes` makes a process its own lanes; `warm` is given the threads and their number.
    """

    application: WsgiApplication
    lanes: Callable[[], Sequence[Lane]] = tuple
    warm: Callable[[ThreadPoolExecutor, int], None] | None = None

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        """The application without its lanes, for servers that have none."""
        return self.application(environ, start_response)


class Server:
    """The lanes and threads of one process."""

    def __init__(self, site: Site, *, threads: int) -> None:
        self._site = site
        self._count = threads
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="web")
        self._most_waiting = threads * WAITING_PER_THREAD
        self._unanswered = 0
        self._no_parting_until = 0.0
        self._lanes = {(lane.method, lane.path): lane for lane in site.lanes()}

    def warm(self) -> None:
        """Do what the first requests would else wait for; to be called before they are accepted."""
        for lane in self._lanes.values():
            lane.warm()
        if self._site.warm is not None:
            self._site.warm(self._threads, self._count)

    def close(self) -> None:
        """Finish what was begun."""
        for lane in self._lanes.values():
            lane.close()
        self._threads.shutdown(wait=True)

    async def answer(self, request: Received) -> Answer:
        """The answer to a request."""
        lane = self._lane_of(request)
        answer = None
        if lane is not None:
            named = dict(request.headers)
            # A header that is there twice is left to the application's reading.
            if len(named) == len(request.headers):
                plain = Request(
                    request.path, request.query, request.address, request.scheme, named, request.body
                )
                answer = await _answer_in_lane(lane, plain)
        if answer is not None:
            return answer
        is_crowded = self._is_crowded()
        answer = await self._answer_in_thread(environ_of(request))
        if is_crowded:
            return replace(answer, headers=[*answer.headers, ("connection", "close")])
        return answer

    def _lane_of(self, request: Received) -> Lane | None:
        if len(request.body) > LARGEST_IN_LOOP:
            return None
        lanes, method, path = self._lanes, request.method, request.path
        return lanes.get((method, path)) or lanes.get((method, path[: path.rfind("/") + 1]))

    def _is_crowded(self) -> bool:
        """Whether one more request in the threads makes a crowd, and no client was asked to leave lately."""
        now = asyncio.get_running_loop().time()
        if self._unanswered + 1 < CROWD or now < self._no_parting_until:
            return False
        self._no_parting_until = now + PARTING_SECONDS
        return True

    async def _answer_in_thread(self, environ: Environ) -> Answer:
        if self._unanswered >= self._most_waiting:
            return refusals.FULL
        self._unanswered += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, environ)
        finally:
            self._unanswered -= 1

    def _run(self, environ: Environ) -> Answer:
        try:
            return run(self._site.application, environ)
        except Exception:
            log.exception("unexpected error on %s", environ["PATH_INFO"])
            return refusals.FAILED


async def _answer_in_lane(lane: Lane, request: Request) -> Answer | None:
    try:
        return await lane.answer(request)
    except Exception:
        log.exception("unexpected error in the lane of %s", lane.path)
        return refusals.FAILED
