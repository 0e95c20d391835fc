"""The lane of `GET /v1/events`, in the event loop: an ordinary page is answered from here.

A request takes it when its key was checked a moment ago, its query is sound and nothing asks for more (a
body). Its rate limit is counted while its rows are read, over one of a few connections that tenants
share. Every other request goes to the view, untouched: it writes every error of form. The lane answers only
what the view would answer, word for word.
"""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from urllib.parse import parse_qsl
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from rest_framework.exceptions import Throttled

from compliance.api import rate_limits
from compliance.api.answers import Answer, standing_headers
from compliance.api.lanes import Request, limit_headers, refusal
from compliance.api.permissions import Scope
from compliance.api.rate_limits import Verdict
from compliance.api.renderers import dumps
from compliance.api.responses import page_body
from compliance.api.throttling import KeyThrottle
from compliance.environments import Environment
from compliance.errors import ServiceError, Unavailable
from compliance.groups import LoopGroups, QueueFull, Sizes
from compliance.loop_sql import LoopConnection, Rows
from compliance.tenancy.callers import Callers, credentials_of
from compliance.turns import LoopTurns
from events.lane import ALLOW, ALLOWED
from events.listing import Question, page_from, read_question, statement

log = logging.getLogger(__name__)

BUCKET = KeyThrottle.bucket
CONNECTIONS = 4
"""Pages of one environment that are read at once, half of them for one tenant at most."""
LONGEST_QUEUE = 200
PATIENCE_SECONDS = 2.0
MOST_PARAMETERS = 20
FULL = "At capacity; retry with backoff"

Found = Rows | DatabaseError | InterfaceError


class Desk:
    """Where one environment's pages are read."""

    def __init__(self, environment: Environment) -> None:
        self._databases = [LoopConnection(environment) for _ in range(CONNECTIONS)]
        self._turns = LoopTurns[Question, Found](
            [partial(_read, database) for database in self._databases],
            share=CONNECTIONS // 2,
            longest_queue=LONGEST_QUEUE,
            patience=PATIENCE_SECONDS,
        )

    def ask(self, question: Question) -> "asyncio.Future[Found]":
        """The rows, or why there are none; raises `QueueFull`, at once or later."""
        return self._turns.ask(question.tenant_id, question)

    def close(self) -> None:
        """Let the connections go."""
        for database in self._databases:
            database.close()


class PageLane:
    """The lane of one web process; `answer()` is called in its event loop only."""

    method, path = "GET", "/v1/events"

    def __init__(self) -> None:
        self._callers = Callers()
        self._desks = {environment: Desk(environment) for environment in Environment}
        self._limits = rate_limits.loop_script()
        self._counts = LoopGroups[str, Verdict](self._counted, sizes=Sizes(largest=100, longest_queue=1_000))
        self._refused: set[str] = set()

    def warm(self) -> None:
        """Connect the thread that looks keys up."""
        self._callers.warm()

    async def answer(self, request: Request) -> Answer | None:
        """The answer to a request, or None: the view must see it."""
        credentials = credentials_of(request) if _is_plain(request) else None
        if credentials is None:
            return None
        key = await self._callers.find(credentials, Scope.EVENTS_READ, request)
        question = _question(request.query, key.tenant_id) if key is not None else None
        if key is None or question is None:
            return None
        self._callers.keep_fresh(credentials)
        try:
            verdict, found = await self._asked(self._desks[credentials.environment], key.identity, question)
        except QueueFull:
            return refusal(Unavailable(FULL, retry_after=1), ALLOW, is_secure=request.is_secure)
        if isinstance(found, Exception):
            return refusal(found, {**ALLOW, **verdict.headers()}, is_secure=request.is_secure)
        page = page_from(found, limit=question.limit)
        body = page_body(page.rows, next_cursor=page.next_cursor, has_next_page=page.next_cursor is not None)
        headers = [*standing_headers(is_secure=request.is_secure), ALLOWED, *limit_headers(verdict)]
        return Answer(200, headers, dumps(body))

    def close(self) -> None:
        """Let the connections go."""
        self._callers.close()
        self._limits.close()
        for desk in self._desks.values():
            desk.close()

    async def _asked(
        self, desk: Desk, identity: str, question: Question
    ) -> tuple[Verdict, Found | Throttled]:
        """Count the request while its rows are read; for who was refused last nothing is read until then."""
        reading = None if identity in self._refused else desk.ask(question)
        try:
            verdict = await self._counts.ask(identity)
            if verdict.allowed:
                self._refused.discard(identity)
                return verdict, await (reading or desk.ask(question))
            self._refused.add(identity)
            return verdict, Throttled(verdict.retry_after)
        finally:
            # Of no use any more, and perhaps not begun.
            if reading is not None:
                reading.cancel()

    async def _counted(self, identities: Sequence[str]) -> list[Verdict]:
        limit = settings.RATE_LIMITS[BUCKET]
        return await rate_limits.hit_each(self._limits, BUCKET, identities, limit=limit)


def _is_plain(request: Request) -> bool:
    return not request.body and request.is_for_us


def _question(query: str, tenant_id: UUID) -> Question | None:
    if not query.isascii():
        return None
    try:
        # Of a parameter that is there twice the last one counts, as with Django.
        params = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=MOST_PARAMETERS))
        return read_question(params, tenant_id=tenant_id)
    except (ServiceError, ValueError):
        return None


async def _read(database: LoopConnection, question: Question) -> Found:
    text, params = statement(question)
    try:
        return await database.rows(text, *(str(param).encode() for param in params))
    except (DatabaseError, InterfaceError) as error:
        log.warning("a page could not be read: %s", type(error).__name__)
        return error
