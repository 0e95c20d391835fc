"""Answers whole requests: an ordinary one in a lane of the event loop, every other one by the application."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from compliance.api.answers import Answer
from compliance.api.lanes import Lane, Request
from compliance.serving import refusals
from compliance.serving.messages import Received
from compliance.serving.views import Views

log = logging.getLogger(__name__)

LARGEST_IN_LOOP = 8 * 1024
"""Octets of the largest body that a lane may be given: while it reads one, the event loop stands still."""
MOST_UNANSWERED = 128
"""Requests that may be with the application or wait for it, a fraction of a second's work; more are turned
away at once."""

CROWD = 3
"""Requests with the application at which one of their clients is asked to connect anew: the kernel gives
connections to workers by chance, and one worker may have most of them while another idles."""
PARTING_SECONDS = 0.25
"""How long a worker keeps all others then."""


class Server:
    """The lanes of one worker, and the views behind them."""

    def __init__(self, views: Views, *, lanes: Sequence[Lane] = ()) -> None:
        self._views = views
        self._unanswered = 0
        self._no_parting_until = 0.0
        self._lanes = {(lane.method, lane.path): lane for lane in lanes}

    def warm(self) -> None:
        """Begin, before the first request, what that one would else wait for."""
        for lane in self._lanes.values():
            lane.warm()

    def close(self) -> None:
        """Finish what was begun."""
        for lane in self._lanes.values():
            lane.close()
        self._views.close()

    async def answer(self, request: Received) -> Answer:
        """The answer to a request; raises `ViewsLost` when the application can't give one any more."""
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
        return answer or await self._answer_by_views(request)

    def _lane_of(self, request: Received) -> Lane | None:
        if len(request.body) > LARGEST_IN_LOOP:
            return None
        lanes, method, path = self._lanes, request.method, request.path
        return lanes.get((method, path)) or lanes.get((method, path[: path.rfind("/") + 1]))

    async def _answer_by_views(self, request: Received) -> Answer:
        if self._unanswered >= MOST_UNANSWERED:
            return refusals.FULL
        is_to_part = self._claim_parting()
        self._unanswered += 1
        try:
            answer = await self._views.answer(request)
        finally:
            self._unanswered -= 1
        if is_to_part:
            return replace(answer, headers=[*answer.headers, ("connection", "close")])
        return answer

    def _claim_parting(self) -> bool:
        """Whether to have the client connect anew: the request makes a crowd, and none was asked lately."""
        now = asyncio.get_running_loop().time()
        if self._unanswered + 1 < CROWD or now < self._no_parting_until:
            return False
        self._no_parting_until = now + PARTING_SECONDS
        return True


async def _answer_in_lane(lane: Lane, request: Request) -> Answer | None:
    try:
        return await lane.answer(request)
    except Exception:
        log.exception("unexpected error in the lane of %s", lane.path)
        return refusals.FAILED
