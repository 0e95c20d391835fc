"""The express lane of `POST /v1/events`, in the event loop: what is ordinary is answered from here.

A request takes it when its key was checked a moment ago, its place under the rate limit is reserved, its body
is sound and nothing asks for more (an `Idempotency-Key`); its event joins the next group commit. Every other
request, and every event that has to be taken alone, goes to the view, untouched: it is the door, and writes
every error of form. The lane answers only what the view would answer, word for word.
"""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections

from compliance import environments
from compliance.api import rate_limits
from compliance.api.answers import Answer, standing_headers
from compliance.api.lanes import Request, limit_headers, refusal
from compliance.api.parsers import loads
from compliance.api.permissions import Scope
from compliance.api.rate_limits import Verdict
from compliance.api.renderers import dumps
from compliance.api.throttling import EventsThrottle
from compliance.clock import now
from compliance.environments import Environment
from compliance.errors import ServiceError, Unavailable
from compliance.groups import QueueFull
from compliance.tenancy import keys, recent_keys, services
from compliance.tenancy.models import ApiKey
from events.group_commit import Committer, committer
from events.ingestion import Outcome, Submission
from events.intake import Report, read_report
from events.serializers import shown
from events.storage import ScoredEvent

log = logging.getLogger(__name__)

BUCKET = EventsThrottle.bucket
MOST_LOOKUPS = 16
ALLOWED = ("allow", "GET, POST, HEAD")
ALLOW = dict([ALLOWED])
FULL = "More events arrive than can be stored; retry with exponential backoff"
JSON_TYPES = frozenset(
    {"application/json", "application/json; charset=utf-8", "application/json;charset=utf-8"}
)


class EventLane:
    """The lane of one web process; `answer()` is called in its event loop only."""

    method, path = "POST", "/v1/events"

    def __init__(self) -> None:
        self._committers: dict[Environment, Committer] = {}
        self._checks = ThreadPoolExecutor(1, thread_name_prefix="callers")
        self._lookups: dict[tuple[Environment, str], asyncio.Future[None]] = {}

    async def answer(self, request: Request) -> Answer | None:
        """The answer to a request, or None: the view must see it."""
        asked = _asked(request)
        key = await self._caller(*asked) if asked is not None else None
        if asked is None or key is None:
            return None
        environment, identity = asked[0], str(key.id)
        verdict = await self._place(environment, key, identity)
        if verdict is None:
            return None
        self._keep_fresh(environment, key, identity)
        received_at = now()
        report = _report(request.body, received_at)
        outcome = None
        if report is not None:
            outcome = await self._settled(environment, Submission(key.tenant_id, report, received_at))
        if isinstance(outcome, ScoredEvent):
            headers = [*standing_headers(is_secure=request.is_secure), ALLOWED, *limit_headers(verdict)]
            return Answer(201, headers, dumps({"data": shown(outcome)}))
        if isinstance(outcome, Exception):
            return refusal(outcome, {**ALLOW, **verdict.headers()}, is_secure=request.is_secure)
        # The view counts the request itself.
        rate_limits.give_back(BUCKET, identity)
        return None

    def close(self) -> None:
        """Store what waits."""
        for one in self._committers.values():
            one.close()
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

    async def _settled(self, environment: Environment, submission: Submission) -> Outcome | Exception:
        if environment not in self._committers:
            self._committers[environment] = committer(environment)
        try:
            return await self._committers[environment].ask(submission)
        except QueueFull:
            return Unavailable(FULL, retry_after=1)


def _asked(request: Request) -> tuple[Environment, str] | None:
    """The environment and the key's digest of an ordinary request; None for one that the view must see."""
    headers = request.headers
    if headers.get("content-type", "").lower() not in JSON_TYPES or "idempotency-key" in headers:
        return None
    if not request.is_for_us:
        return None
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    environment = keys.environment_of(secret) if scheme == "Bearer" else None
    return None if environment is None else (environment, keys.digest(secret))


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
