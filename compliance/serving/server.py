"""Answers whole requests: plain ones by the fast path in the event loop, all others by the application."""

import asyncio
import logging
from dataclasses import replace
from typing import Protocol

from compliance.api.answers import Answer
from compliance.observing import correlation
from compliance.observing.request_counts import UNROUTED, loop_counts
from compliance.serving.django_process import DjangoProcess
from compliance.serving.http import refusals
from compliance.serving.http.messages import Received

log = logging.getLogger(__name__)

MOST_UNANSWERED = 128  # requests with the application or waiting for it; more are refused at once
REBALANCE_AT = 3
"""Requests with the application at which a client is asked to connect anew, perhaps to a less busy worker."""
REBALANCE_SECONDS = 0.25  # the pause before a worker asks the next client


class LoopEntrance(Protocol):
    """Answers plain requests in the event loop."""

    def warm(self) -> None:
        """Open connections before the first request."""

    async def answer(self, received: Received) -> Answer | None:
        """The answer; None: the application has to give it."""

    async def close(self) -> None:
        """Close connections, once the requests under way are answered."""


class Server:
    """What answers the requests of one worker: the views, and before them the fast path, if there is one."""

    def __init__(self, views: DjangoProcess, *, fast_path: LoopEntrance | None = None) -> None:
        self._views = views
        self._fast_path = fast_path
        self._unanswered = 0
        self._no_rebalancing_until = 0.0

    def warm(self) -> None:
        """Open connections before the first request."""
        if self._fast_path is not None:
            self._fast_path.warm()

    async def close(self) -> None:
        """Close connections, once the requests under way are answered."""
        if self._fast_path is not None:
            await self._fast_path.close()
        self._views.close()

    async def answer(self, request: Received) -> Answer:
        """The answer to a request. Raises: DjangoLost when the application can give none any more."""
        correlation.enter(request.correlation)
        answer = None
        if self._fast_path is not None:
            try:
                answer = await self._fast_path.answer(request)
            except Exception:
                log.exception("unexpected error on the fast path of %s", request.path)
                loop_counts.note(method=request.method, route=UNROUTED, status=500, seconds=0.0)
                return refusals.FAILED.at(request.path)
        return answer or await self._answer_by_views(request)

    async def _answer_by_views(self, request: Received) -> Answer:
        if self._unanswered >= MOST_UNANSWERED:
            loop_counts.note(method=request.method, route=UNROUTED, status=503, seconds=0.0)
            return refusals.FULL.at(request.path)
        is_to_close = self._claim_rebalancing()
        self._unanswered += 1
        try:
            answer = await self._views.answer(request)
        finally:
            self._unanswered -= 1
        if is_to_close:
            return replace(answer, headers=[*answer.headers, ("connection", "close")])
        return answer

    def _claim_rebalancing(self) -> bool:
        """Whether to have the client connect anew: many requests wait, and the pause is over."""
        now = asyncio.get_running_loop().time()
        if self._unanswered + 1 < REBALANCE_AT or now < self._no_rebalancing_until:
            return False
        self._no_rebalancing_until = now + REBALANCE_SECONDS
        return True
