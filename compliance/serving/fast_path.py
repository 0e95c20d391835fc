"""The second entrance of endpoints: plain requests, answered in the event loop of a web worker.

The fast path answers what Django's view would answer, to the letter, from the same definition
(`compliance.api.endpoint`). It leaves to the view what it does not judge: unknown keys and hosts, duplicated
headers, `Idempotency-Key`, bodies that are large or of another media type, query strings, other methods.
"""

import logging
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, Protocol

from rest_framework.exceptions import Throttled

from compliance.api import exceptions, gate, rate_limits
from compliance.api.answers import Answer, json_answer
from compliance.api.endpoint import Endpoint, EndpointRequest
from compliance.api.gate import Credential, GateRequest
from compliance.api.rate_limits import Caller, RateLimit
from compliance.api.rest.parsers import read_json
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.errors import ServiceError, Unavailable
from compliance.core.shares import AllTaken
from compliance.observing import metrics
from compliance.serving.batching import Batcher, QueueFull
from compliance.serving.executors import DeferredThreads, Work
from compliance.serving.http.messages import Received
from compliance.stores.redis import AsyncClient

log = logging.getLogger(__name__)

LARGEST_BODY = 8 * 1024  # octets of the largest body that is read here: the event loop stands still meanwhile
COUNTED_TOGETHER = 100
LONGEST_QUEUE = 2_000
_Costs = tuple[tuple[Caller, int], ...]


class KeyFinder(Protocol):
    async def find(self, request: GateRequest, secret: str) -> tuple[Environment, Credential] | None:
        """The key that a request presents, with its environment; None where the view has to judge it."""

    def close(self) -> None:
        """Close the connections."""


class FastPath:
    """The endpoints of one web worker; `answer()` is called in its event loop only."""

    def __init__(self, endpoints: Iterable[Endpoint[Any, Any]], keys: KeyFinder) -> None:
        self._endpoints = {(one.method, one.path): one for one in endpoints}
        self._keys = keys
        self._client = AsyncClient()
        self._counts = Batcher[_Costs, RateLimit](
            self._counted, largest=COUNTED_TOGETHER, longest_queue=LONGEST_QUEUE, name="rate_limits"
        )
        self._work: dict[tuple[type, Environment], Work] = {}  # made when it is first needed
        self._deferred = {environment: DeferredThreads() for environment in Environment}

    async def close(self) -> None:
        for work in self._work.values():
            await work.close()
        for deferred in self._deferred.values():
            await deferred.close()
        await self._client.close()
        self._keys.close()

    async def answer(self, received: Received) -> Answer | None:
        """The answer to a request; None: the view has to see it."""
        call = await self._admitted(received)
        if call is None:
            return None
        began = time.monotonic() if received.correlation is None else received.correlation.began
        answer = await self._served(call)
        metrics.note_answer(
            method=received.method,
            route=call.endpoint.route,
            status=answer.status,
            seconds=time.monotonic() - began,
        )
        return answer

    async def holder_of(self, received: Received) -> Hashable:
        """Return in whose share the view answers a request: the tenant's of its key, else its address's."""
        request = GateRequest(received.address, received.scheme, dict(received.headers))
        found = await self._keys.find(request, gate.bearer_token(request) or "")
        return gate.client_address(request) if found is None else found[1].tenant_id

    async def _admitted(self, received: Received) -> "_Call | None":
        """The endpoint call, authenticated if the endpoint needs a key; None to leave it to the view."""
        endpoint, parameter = self._route(received)
        headers = dict(received.headers)
        if endpoint is None or not _is_plain(endpoint, received, headers):
            return None
        request = GateRequest(received.address, received.scheme, headers)
        if not gate.is_known_host(headers.get("host", "")):
            return None
        call = _Call(endpoint, request, parameter, received.body)
        if endpoint.scope is None:
            return call
        found = await self._keys.find(request, endpoint.key_of(request))
        return None if found is None else call._replace(environment=found[0], key=found[1])

    async def _served(self, call: "_Call") -> Answer:
        limit = None
        try:
            limit = await self._counts.ask(call.costs)
            _throttle(limit)
            question = self._question(call)
            (caller, counted), *_ = call.costs
            if (rest := call.endpoint.requests_in(question) - counted) > 0:
                limit = await self._counts.ask(((caller, rest),))
                _throttle(limit)
            environment = call.environment or call.endpoint.environment_of(question)
            tenant_id = None if call.key is None else call.key.tenant_id
            place = type(call.endpoint), environment
            if place not in self._work:
                self._work[place] = Work(call.endpoint, environment, self._deferred[environment])
            outcome = await self._work[place].ask(question, tenant_id)
            body, more = call.endpoint.show(outcome), call.endpoint.headers_of(outcome)
        except (QueueFull, AllTaken):
            return call.refused(limit, Unavailable(call.endpoint.full, retry_after=1))
        except Exception as error:  # noqa: BLE001  (whatever it is, the client gets an answer)
            return call.refused(limit, error)
        return call.answer(limit, call.endpoint.status, body, more)

    def _question(self, call: "_Call") -> Any:
        """The question of a call that was counted. Raises: ServiceError."""
        endpoint, key = call.endpoint, call.key
        if key is not None and endpoint.scope is not None:
            gate.require_scope(key, endpoint.scope)
        body = read_json(call.body) if endpoint.method == "POST" else None
        tenant_id = None if key is None else key.tenant_id
        key_id, headers = None if key is None else key.id, call.request.headers
        asked = EndpointRequest(now(), call.parameter, {}, body, tenant_id, headers, key_id)
        with environments.use(call.environment) if call.environment else nullcontext():
            return endpoint.read(asked)

    def _route(self, received: Received) -> tuple[Endpoint[Any, Any] | None, str]:
        method = "GET" if received.method == "HEAD" else received.method
        endpoint = self._endpoints.get((method, received.path))
        if endpoint is not None and not received.path.endswith("/"):
            return endpoint, ""
        folder, _, parameter = received.path.rpartition("/")
        endpoint = self._endpoints.get((method, f"{folder}/"))
        if endpoint is None or not parameter or parameter in endpoint.reserved:
            return None, ""
        return endpoint, parameter

    async def _counted(self, calls: Sequence[_Costs]) -> list[RateLimit]:
        """The limit of each call: the first that refuses it, or that of its endpoint."""
        with metrics.timed(metrics.REDIS_SECONDS, metrics.REDIS_ERRORS, "rate_limits"):
            found = iter(await rate_limits.hit_each(self._client, [cost for call in calls for cost in call]))
        limits = ([next(found) for _ in call] for call in calls)
        return [next((one for one in of_call if not one.allowed), of_call[0]) for of_call in limits]


class _Call(NamedTuple):
    """A plain request to an endpoint; `environment` and `key` where that wants a key."""

    endpoint: Endpoint[Any, Any]
    request: GateRequest
    parameter: str
    body: bytes
    environment: Environment | None = None
    key: Credential | None = None

    @property
    def costs(self) -> _Costs:
        bucket, octets = self.endpoint.bucket, len(self.body)
        identity = gate.client_address(self.request) if self.key is None else str(self.key.id)
        counted = (Caller(bucket, identity), rate_limits.cost_of(octets, bucket))
        if self.key is None or self.environment is None or bucket not in rate_limits.COUNTED_BY_OCTETS:
            return (counted,)
        if not octets:
            return (counted,)
        return counted, (rate_limits.sender_of(self.environment, self.key), octets)

    def answer(
        self, limit: RateLimit | None, status: int, body: Any, more: Mapping[str, str] | None = None
    ) -> Answer:
        """An answer with the headers that every answer of the endpoint has."""
        limits = {} if limit is None else limit.headers()
        headers = {"allow": self.endpoint.allow, **self.endpoint.headers, **limits, **(more or {})}
        return json_answer(status, body, headers, secure=gate.is_secure(self.request))

    def refused(self, limit: RateLimit | None, error: Exception) -> Answer:
        """The answer to an error; 500 for a defect, which is logged."""
        found = exceptions.error_parts(error)
        if found is None:
            tenant = {} if self.key is None else {"tenant": self.key.tenant_id}
            log.error("unexpected error on %s", self.endpoint.path, exc_info=error, extra=tenant)
            found = ServiceError.status, ServiceError.message, {}
        status, message, more = found
        return self.answer(limit, status, {"error": message}, more)


def _throttle(limit: RateLimit) -> None:
    if not limit.allowed:
        raise Throttled(limit.retry_after)


def _is_plain(endpoint: Endpoint[Any, Any], received: Received, headers: Mapping[str, str]) -> bool:
    if received.query or len(headers) != len(received.headers):
        return False
    if endpoint.method != "POST":
        return not received.body
    is_read = headers.get("content-type", "").lower() in gate.JSON_TYPES
    return is_read and len(received.body) <= LARGEST_BODY and "idempotency-key" not in headers
