"""The express lane of `POST /v1/events`, in the event loop: what is ordinary is answered from here.

A request takes it when its key was checked a moment ago, its place under the rate limit is reserved, its body
is sound and nothing asks for more (an `Idempotency-Key`); its event joins the next group commit. Every other
request, and every event that has to be taken alone, goes to the view, untouched: it is the door, and writes
every error of form. The lane answers only what the view would answer, word for word.
"""

import asyncio
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import cached_property, lru_cache

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections
from django.http.request import split_domain_port, validate_host

from compliance import environments
from compliance.api import exceptions, rate_limits
from compliance.api.answers import Answer, Headers, json_answer, standing_headers
from compliance.api.parsers import loads
from compliance.api.permissions import Scope
from compliance.api.rate_limits import Verdict
from compliance.api.renderers import dumps
from compliance.api.throttling import EventsThrottle
from compliance.clock import now
from compliance.environments import Environment
from compliance.errors import ServiceError, Unavailable
from compliance.tenancy import keys, recent_keys, services
from compliance.tenancy.models import ApiKey
from events.group_commit import GroupCommitter, QueueFull, Settled
from events.ingestion import Outcome, Submission
from events.intake import Report, read_report
from events.serializers import shown
from events.storage import ScoredEvent

log = logging.getLogger(__name__)

BUCKET = EventsThrottle.bucket
MOST_LOOKUPS = 16
ALLOW = {"Allow": "GET, POST, HEAD"}
FULL = "More events arrive than can be stored; retry with exponential backoff"
JSON_TYPES = frozenset(
    {"application/json", "application/json; charset=utf-8", "application/json;charset=utf-8"}
)


class EventLane:
    """The lane of one web process; `answer()` is called in its event loop only."""

    method, path = "POST", "/v1/events"

    def __init__(self) -> None:
        self._committers: dict[Environment, GroupCommitter] = {}
        self._checks = ThreadPoolExecutor(1, thread_name_prefix="callers")
        self._lookups: dict[tuple[Environment, str], asyncio.Future[None]] = {}
        self._waiting: dict[int, asyncio.Future[Outcome | Exception]] = {}

    async def answer(self, headers: Mapping[str, str], body: bytes) -> Answer | None:
        """The answer to a request, or None: the view must see it."""
        asked = _asked(headers)
        key = await self._caller(*asked) if asked is not None else None
        if asked is None or key is None:
            return None
        environment, identity = asked[0], str(key.id)
        verdict = await self._place(environment, key, identity)
        if verdict is None:
            return None
        self._keep_fresh(environment, key, identity)
        received_at = now()
        report = _report(body, received_at)
        outcome = None
        if report is not None:
            outcome = await self._settled(environment, Submission(key.tenant_id, report, received_at))
        if isinstance(outcome, ScoredEvent):
            return Answer(201, [*self._headers, *_limit_headers(verdict)], dumps({"data": shown(outcome)}))
        if isinstance(outcome, Exception):
            return _refused(outcome, verdict)
        # The view counts the request itself.
        rate_limits.give_back(BUCKET, identity)
        return None

    def close(self) -> None:
        """Store what waits."""
        for committer in self._committers.values():
            committer.close()
        self._checks.submit(connections.close_all)
        self._checks.shutdown(wait=True)

    async def _caller(self, environment: Environment, digest: str) -> ApiKey | None:
        """The key, looked up if need be, once for all who ask; None for one that the view must judge."""
        key = recent_keys.find(environment, digest)
        if key is None:
            await self._look_up(environment, digest)
            key = recent_keys.find(environment, digest)
        if key is None or Scope.EVENTS_WRITE not in key.scopes or key.is_expired(now()):
            return None
        return key

    async def _place(self, environment: Environment, key: ApiKey, identity: str) -> Verdict | None:
        """A place under the rate limit, with more reserved if need be; None where the view must count."""
        verdict = rate_limits.take(BUCKET, identity)
        if verdict is None:
            await self._look_up(environment, key.digest)
            verdict = rate_limits.take(BUCKET, identity)
        return verdict

    async def _look_up(self, environment: Environment, digest: str) -> None:
        """Wait for a look at the key and a reservation, one for all who ask at a time."""
        pending = self._lookups.get((environment, digest))
        if pending is None:
            # Whoever tries many keys tries them on the view.
            if len(self._lookups) >= MOST_LOOKUPS:
                return
            loop = asyncio.get_running_loop()
            pending = loop.run_in_executor(self._checks, _refresh, environment, digest)
            self._lookups[environment, digest] = pending
            pending.add_done_callback(lambda _: self._lookups.pop((environment, digest)))
        await asyncio.shield(pending)

    def _keep_fresh(self, environment: Environment, key: ApiKey, identity: str) -> None:
        """Have the key looked up and its requests counted in time, so that none has to wait for it."""
        is_claimed = rate_limits.claim_renewal(BUCKET, identity)
        if recent_keys.claim_check(environment, key.digest) or is_claimed:
            self._checks.submit(_refresh, environment, key.digest, is_claimed=is_claimed)

    @cached_property
    def _headers(self) -> Headers:
        return [*standing_headers(), *((name.lower(), value) for name, value in ALLOW.items())]

    async def _settled(self, environment: Environment, submission: Submission) -> Outcome | Exception:
        loop = asyncio.get_running_loop()
        committer = self._committers.get(environment)
        if committer is None:
            committer = self._committers[environment] = self._new_committer(environment, loop)
        future: asyncio.Future[Outcome | Exception] = loop.create_future()
        try:
            committer.submit(submission)
        except QueueFull:
            return Unavailable(FULL, retry_after=1)
        self._waiting[id(submission)] = future
        return await future

    def _new_committer(self, environment: Environment, loop: asyncio.AbstractEventLoop) -> GroupCommitter:
        return GroupCommitter(environment, lambda settled: loop.call_soon_threadsafe(self._deliver, settled))

    def _deliver(self, settled: Settled) -> None:
        for submission, outcome in settled:
            future = self._waiting.pop(id(submission))
            # Its request may have been given up by the client.
            if not future.done():
                future.set_result(outcome)


def _asked(headers: Mapping[str, str]) -> tuple[Environment, str] | None:
    """The environment and the key's digest of an ordinary request; None for one that the view must see."""
    if headers.get("content-type", "").lower() not in JSON_TYPES or "idempotency-key" in headers:
        return None
    if not _is_allowed(headers.get("host", "")):
        return None
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    environment = keys.environment_of(secret) if scheme == "Bearer" else None
    return None if environment is None else (environment, keys.digest(secret))


@lru_cache(maxsize=64)
def _is_allowed(host: str) -> bool:
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def _refresh(environment: Environment, digest: str, *, is_claimed: bool = False) -> None:
    """Look the key up and reserve its next requests; what fails is left to the view."""
    with environments.use(environment):
        connections[environment.alias].close_if_unusable_or_obsolete()
        try:
            key = services.check(digest=digest, now=now())
        except (ServiceError, DatabaseError, InterfaceError) as error:
            log.info("an API key is not vouched for: %s", type(error).__name__)
            recent_keys.drop(environment, digest)
            return
        identity = str(key.id)
        if is_claimed or rate_limits.claim_renewal(BUCKET, identity, when_due=False):
            rate_limits.renew(BUCKET, identity, limit=settings.RATE_LIMITS[BUCKET])


def _report(body: bytes, received_at: datetime) -> Report | None:
    try:
        return read_report(loads(body), now=received_at)
    except ServiceError:
        return None


def _limit_headers(verdict: Verdict) -> Headers:
    return [
        ("x-ratelimit-limit", str(verdict.limit)),
        ("x-ratelimit-remaining", str(verdict.remaining)),
        ("x-ratelimit-reset", str(verdict.reset_at)),
    ]


def _refused(error: Exception, verdict: Verdict) -> Answer | None:
    found = exceptions.answer(error)
    if found is None:
        return None
    status, message, headers = found
    return json_answer(status, {"error": message}, {**ALLOW, **verdict.headers(), **headers})
