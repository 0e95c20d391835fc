"""The second entrance of endpoints: plain requests, answered in the event loop of a web worker.

The fast path answers what Django's view would answer, to the letter, from the same definition
(`compliance.api.endpoint`). It leaves to the view what it does not judge: unknown keys and hosts, duplicated
headers, `Idempotency-Key`, bodies that are large or of another media type, other methods.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl

from django.conf import settings
from rest_framework.exceptions import Throttled

from compliance.api import gate, rate_limits
from compliance.api.answers import Answer, json_answer
from compliance.api.endpoint import Endpoint, EndpointRequest
from compliance.api.gate import GateRequest
from compliance.api.rate_limits import Caller, RateLimit
from compliance.api.rest.requests import Credential
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.errors import ServiceError, Unavailable
from compliance.observing import metrics, tracing
from compliance.observing.request_counts import loop_counts
from compliance.serving.batching import Batcher, QueueFull
from compliance.serving.executors import Executors
from compliance.serving.http.messages import Received
from compliance.stores.redis import AsyncClient, AsyncScript

log = logging.getLogger(__name__)

LARGEST_BODY = 8 * 1024  # octets of the largest body that is read here: the event loop stands still meanwhile
MOST_PARAMETERS = 20
COUNTED_TOGETHER = 100
LONGEST_QUEUE = 2_000


class KeyFinder(Protocol):
    """Finds API keys for the event loop."""

    async def find(self, request: GateRequest, secret: str) -> tuple[Environment, Credential] | None:
        """The key that a request presents, with its environment; None where the view has to judge it."""

    def warm(self) -> None:
        """Open connections before the first request."""

    def close(self) -> None:
        """Close the connections."""


class FastPath:
    """The endpoints of one web worker; `answer()` is called in its event loop only."""

    def __init__(self, endpoints: Iterable[Endpoint[Any, Any]], keys: KeyFinder) -> None:
        self._endpoints = {(one.method, one.path, one.suffix): one for one in endpoints}
        self._keys = keys
        self._client = AsyncClient()
        self._script = AsyncScript(rate_limits.SCRIPT, self._client)
        self._counts = Batcher[Caller, RateLimit](
            self._counted, largest=COUNTED_TOGETHER, longest_queue=LONGEST_QUEUE, name="rate_limits"
        )
        self._executors = Executors()

    def warm(self) -> None:
        """Open connections before the first request."""
        self._keys.warm()
        for endpoint in self._endpoints.values():
            self._executors.warm(endpoint)

    async def close(self) -> None:
        """Finish what waits, and close the connections."""
        await self._executors.close()
        await self._client.close()
        self._keys.close()

    async def answer(self, received: Received) -> Answer | None:
        """The answer to a request; None: the view has to see it."""
        call = await self._admitted(received)
        if call is None:
            return None
        began = time.monotonic() if received.correlation is None else received.correlation.began
        answer = await self._served(call)
        method, route, status = received.method, call.endpoint.route, answer.status
        seconds = time.monotonic() - began
        loop_counts.note(method=method, route=route, status=status, seconds=seconds)
        if settings.OTEL_EXPORTER_OTLP_ENDPOINT:
            tags = {"http_request_method": method, "http_route": route, "http_response_status_code": status}
            name, ids, failed = f"{method} {route}", received.correlation, status >= 500
            tracing.record(ids, name, kind="SERVER", seconds=seconds, failed=failed, **tags)
        return answer

    async def _admitted(self, received: Received) -> "_Call | None":
        """The endpoint call, authenticated if the endpoint needs a key; None to leave it to the view."""
        endpoint, parameter = self._route(received)
        headers = dict(received.headers)
        if endpoint is None or not _is_plain(endpoint, received, headers):
            return None
        request = GateRequest(received.address, received.scheme, headers)
        query = _query(received.query)
        if query is None or not gate.has_known_host(request):
            return None
        call = _Call(endpoint, request, parameter, query, received.body)
        if endpoint.scope is None:
            return call
        found = await self._keys.find(request, endpoint.key_of(request, received.body))
        if found is None or not endpoint.fits(request, received.body, found[1]):
            return None
        return call._replace(environment=found[0], key=found[1])

    async def _served(self, call: "_Call") -> Answer:
        """Count the call, do the work and show the outcome, or the error it met."""
        limit = None
        try:
            limit = await self._counts.ask(call.caller)
            outcome = await self._outcome(call, limit)
            body, more = call.endpoint.show(outcome), call.endpoint.headers_of(outcome)
        except QueueFull:
            return call.refused(limit, Unavailable(call.endpoint.full, retry_after=1))
        except Exception as error:  # noqa: BLE001  (whatever it is, the client gets an answer)
            return call.refused(limit, error)
        return call.answer(limit, call.endpoint.status, body, more)

    async def _outcome(self, call: "_Call", limit: RateLimit) -> Any:
        """The outcome of a call that was counted. Raises: ServiceError, Throttled, QueueFull."""
        endpoint, key = call.endpoint, call.key
        if not limit.allowed:
            raise Throttled(limit.retry_after)
        if key is not None and endpoint.scope is not None:
            gate.require_scope(key, endpoint.scope)
        body = endpoint.body_of(call.body) if endpoint.method == "POST" else None
        tenant_id = None if key is None else key.tenant_id
        key_id, headers = None if key is None else key.id, call.request.headers
        question = endpoint.read(
            EndpointRequest(now(), call.parameter, call.query, body, tenant_id, headers, key_id)
        )
        environment = endpoint.environment_of(question) if key is None else call.environment
        return await self._executors.ask(endpoint, environment, question, tenant_id)

    def _route(self, received: Received) -> tuple[Endpoint[Any, Any] | None, str]:
        method = "GET" if received.method == "HEAD" else received.method
        folder, _, last = received.path.rpartition("/")
        outer, _, inner = folder.rpartition("/")
        if not last:
            return None, ""
        # As a whole, with a parameter at the end, with a parameter before the last segment.
        for path, parameter, suffix in (
            (received.path, "", ""),
            (f"{folder}/", last, ""),
            (f"{outer}/", inner, f"/{last}"),
        ):
            endpoint = self._endpoints.get((method, path, suffix))
            if endpoint is not None and (parameter or not path.endswith("/")):
                return (None if parameter in endpoint.reserved else endpoint), parameter
        return None, ""

    async def _counted(self, callers: Sequence[Caller]) -> list[RateLimit]:
        with metrics.timed(metrics.REDIS_SECONDS, metrics.REDIS_ERRORS, "rate_limits"):
            return await rate_limits.hit_each(self._script, callers)


class _Call(NamedTuple):
    """A plain request to an endpoint; `environment` and `key` where that wants a key."""

    endpoint: Endpoint[Any, Any]
    request: GateRequest
    parameter: str
    query: Mapping[str, str]
    body: bytes
    environment: Environment | None = None
    key: Credential | None = None

    @property
    def caller(self) -> Caller:
        """Whom the rate limit counts."""
        identity = gate.client_address(self.request) if self.key is None else str(self.key.id)
        return Caller(self.endpoint.bucket, identity)

    def answer(
        self, limit: RateLimit | None, status: int, body: Any, more: Mapping[str, str] | None = None
    ) -> Answer:
        """An answer with the headers that every answer of the endpoint has."""
        limits = {} if limit is None else limit.headers()
        headers = {"allow": self.endpoint.allow, **self.endpoint.headers, **limits, **(more or {})}
        return json_answer(status, body, headers, secure=gate.is_secure(self.request))

    def refused(self, limit: RateLimit | None, error: Exception) -> Answer:
        """The answer to an error; 500 for a defect, which is logged."""
        found = self.endpoint.refusal(error, self.request)
        if found is None:
            tenant = {} if self.key is None else {"tenant": self.key.tenant_id}
            log.error("unexpected error on %s", self.endpoint.path, exc_info=error, extra=tenant)
            found = self.endpoint.refusal(ServiceError(), self.request) or (500, {}, {})
        status, body, more = found
        return self.answer(limit, status, body, more)


def _is_plain(endpoint: Endpoint[Any, Any], received: Received, headers: Mapping[str, str]) -> bool:
    """Whether the request has no more to it than an endpoint's definition reads."""
    if len(headers) != len(received.headers) or (received.query and not endpoint.takes_query):
        return False
    if endpoint.method != "POST":
        return not received.body
    is_read = headers.get("content-type", "").lower() in endpoint.media_types
    return is_read and len(received.body) <= LARGEST_BODY and "idempotency-key" not in headers


def _query(text: str) -> dict[str, str] | None:
    """The parameters of a query string, the last value of each; None for one that the view has to judge."""
    if not text.isascii():
        return None
    try:
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_PARAMETERS))
    except ValueError:
        return None
