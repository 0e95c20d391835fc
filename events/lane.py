"""The express lane of `POST /v1/events`, in the event loop: what is ordinary is answered from here.

A request takes it when its key was checked a moment ago, its place under the rate limit is reserved, its body
is sound and nothing asks for more (an `Idempotency-Key`); its event joins the next group commit. Every other
request, and every event that has to be taken alone, goes to the view, untouched: it is the door, and writes
every error of form. The lane answers only what the view would answer, word for word.
"""

from datetime import datetime

from django.conf import settings

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
from compliance.tenancy.callers import Callers, Credentials, credentials_of
from compliance.tenancy.models import ApiKey
from events.group_commit import Committer, committer, rehearse
from events.ingestion import Outcome, Submission
from events.intake import Report, read_report
from events.serializers import shown
from events.storage import ScoredEvent

BUCKET = EventsThrottle.bucket
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
        self._callers = Callers(_reserve)

    def warm(self) -> None:
        """Connect the threads that look keys up and store groups."""
        self._callers.warm()
        self._committer_of(Environment.LIVE).begin(rehearse)

    async def answer(self, request: Request) -> Answer | None:
        """The answer to a request, or None: the view must see it."""
        credentials = credentials_of(request) if _is_ordinary(request) else None
        if credentials is None:
            return None
        key = await self._callers.find(credentials, Scope.EVENTS_WRITE, request)
        if key is None:
            return None
        environment, identity = credentials.environment, key.identity
        verdict = await self._place(credentials, identity)
        if verdict is None:
            return None
        is_claimed = rate_limits.claim_renewal(BUCKET, identity)
        self._callers.keep_fresh(credentials, is_claimed=is_claimed)
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
        self._callers.close()

    async def _place(self, credentials: Credentials, identity: str) -> Verdict | None:
        """A place under the rate limit, with more reserved if need be; None where the view must count."""
        verdict = rate_limits.take(BUCKET, identity)
        if verdict is None:
            await self._callers.look_up(credentials)
            verdict = rate_limits.take(BUCKET, identity)
        return verdict

    async def _settled(self, environment: Environment, submission: Submission) -> Outcome | Exception:
        try:
            return await self._committer_of(environment).ask(submission)
        except QueueFull:
            return Unavailable(FULL, retry_after=1)

    def _committer_of(self, environment: Environment) -> Committer:
        if environment not in self._committers:
            self._committers[environment] = committer(environment)
        return self._committers[environment]


def _is_ordinary(request: Request) -> bool:
    headers = request.headers
    is_json = headers.get("content-type", "").lower() in JSON_TYPES
    return is_json and "idempotency-key" not in headers and request.is_for_us


def _reserve(key: ApiKey, is_claimed: bool) -> None:
    """Count the key's next requests ahead, if it is this look's to do."""
    identity = key.identity
    if is_claimed or rate_limits.claim_renewal(BUCKET, identity, when_due=False):
        rate_limits.renew(BUCKET, identity, limit=settings.RATE_LIMITS[BUCKET])


def _report(body: bytes, received_at: datetime) -> Report | None:
    try:
        return read_report(loads(body), now=received_at)
    except ServiceError:
        return None
