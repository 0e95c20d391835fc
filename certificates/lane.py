"""The lane of `GET /v1/verify/{serial}`, in the event loop: the plain question is answered from here.

A request takes it when its serial can be one of ours and nothing asks for more (a query, a body).
Those that wait while an answer is fetched are answered together: one count of their rate limits, one
statement, read after the last of them came; nothing is kept. Every other request goes to the view, untouched,
and so does one that meets a defect. The lane answers only what the view would answer, word for word.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from rest_framework.exceptions import Throttled

from certificates import services
from certificates.errors import CertificateNotFound
from certificates.serializers import shown_verification
from certificates.serials import environment_of, parse_serial
from certificates.verification import WITH_SERIALS, Verification, array_of
from compliance.api import rate_limits
from compliance.api.answers import Answer, standing_headers
from compliance.api.lanes import Request, limit_headers, refusal
from compliance.api.rate_limits import Verdict
from compliance.api.renderers import dumps
from compliance.api.throttling import VerifyThrottle, address_behind
from compliance.clock import now
from compliance.environments import Environment
from compliance.errors import Unavailable
from compliance.groups import LoopGroups, QueueFull, Sizes
from compliance.loop_sql import LoopConnection

log = logging.getLogger(__name__)

BUCKET = VerifyThrottle.bucket
SIZES = Sizes(largest=100, longest_queue=1_000)
ALWAYS = [("allow", "GET, HEAD"), ("cache-control", "no-store")]
FULL = "At capacity; retry with backoff"


class Question(NamedTuple):
    """A serial that somebody asks about; `address` is whom the rate limit counts."""

    serial: int
    address: str
    is_secure: bool


Found = Mapping[int, Verification] | DatabaseError | InterfaceError


class Desk:
    """Where one environment's questions are answered, group by group, over two connections of its own."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._limits = rate_limits.loop_script()
        self._database = LoopConnection(environment)
        self._is_refusing = False
        self._groups = LoopGroups[Question, Answer | None](self._answers, sizes=SIZES)

    def ask(self, question: Question) -> asyncio.Future[Answer | None]:
        """The answer, None for what the view has to look at; raises `QueueFull` at once."""
        return self._groups.ask(question)

    def close(self) -> None:
        """Let the connections go."""
        self._limits.close()
        self._database.close()

    async def _answers(self, group: Sequence[Question]) -> list[Answer | None]:
        if self._is_refusing:
            # While some are refused, nobody is read of who may be.
            verdicts = await self._counted(group)
            found = await self._found(
                {asked.serial for asked, verdict in zip(group, verdicts, strict=True) if verdict.allowed}
            )
        else:
            reading = asyncio.ensure_future(self._found({asked.serial for asked in group}))
            try:
                verdicts = await self._counted(group)
            finally:
                found = await reading
        self._is_refusing = not all(verdict.allowed for verdict in verdicts)
        return [_answer(asked, verdict, found) for asked, verdict in zip(group, verdicts, strict=True)]

    async def _counted(self, group: Sequence[Question]) -> list[Verdict]:
        limit = settings.RATE_LIMITS[BUCKET]
        addresses = [asked.address for asked in group]
        return await rate_limits.hit_each(self._limits, BUCKET, addresses, limit=limit)

    async def _found(self, serials: set[int]) -> Found:
        if not serials:
            return {}
        moment = now()
        try:
            rows = await self._database.rows(WITH_SERIALS, array_of(serials))
        except (DatabaseError, InterfaceError) as error:
            log.warning("%d certificates could not be read: %s", len(serials), type(error).__name__)
            return error
        return services.verifications(rows, environment=self._environment, now=moment)


class VerifyLane:
    """The lane of one web process; `answer()` is called in its event loop only.

    Each environment has its own desk: neither waits for the other.
    """

    method, path = "GET", "/v1/verify/"

    def __init__(self) -> None:
        self._desks = {environment: Desk(environment) for environment in Environment}

    def warm(self) -> None:
        """Nothing: its connections belong to the event loop, which opens them for the first question."""

    async def answer(self, request: Request) -> Answer | None:
        """The answer to a request, or None: the view must see it."""
        serial = parse_serial(request.path[len(self.path) :])
        if serial is None or request.query or request.body or not request.is_for_us:
            return None
        address = address_behind(request.address, request.headers.get("x-forwarded-for", ""))
        question = Question(serial, address, request.is_secure)
        try:
            return await self._desks[environment_of(serial)].ask(question)
        except QueueFull:
            return refusal(Unavailable(FULL, retry_after=1), dict(ALWAYS), is_secure=request.is_secure)

    def close(self) -> None:
        """Let the connections go."""
        for desk in self._desks.values():
            desk.close()


def _answer(asked: Question, verdict: Verdict, found: Found) -> Answer | None:
    if not verdict.allowed:
        return _refused(Throttled(verdict.retry_after), asked, verdict)
    if isinstance(found, Exception):
        return _refused(found, asked, verdict)
    one = found.get(asked.serial)
    if one is None:
        return _refused(CertificateNotFound(), asked, verdict)
    try:
        body = dumps({"data": shown_verification(one)})
    except (KeyError, TypeError, ValueError):
        log.exception("certificate %s is left to the view", one.certificate.id)
        return None
    return Answer(200, [*standing_headers(is_secure=asked.is_secure), *ALWAYS, *limit_headers(verdict)], body)


def _refused(error: Exception, asked: Question, verdict: Verdict) -> Answer | None:
    return refusal(error, {**dict(ALWAYS), **verdict.headers()}, is_secure=asked.is_secure)
