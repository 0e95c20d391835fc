"""Every endpoint of the fast path is answered alike at both entrances: by it and by Django's view."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from certificates.pki.serials import format_serial, new_serial
from certificates.tests.factories import make_certified_agent
from compliance.api.answers import Answer, Headers
from compliance.api.endpoint import Endpoint
from compliance.api.rate_limits import COUNTED_BY_OCTETS
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.errors import Forbidden, Unauthorized
from compliance.core.identifiers import new_id
from compliance.serving.endpoints import ENDPOINTS
from compliance.serving.fast_path import LARGEST_BODY
from compliance.tests.owner import end_sessions
from compliance.tests.url_table import api_routes
from compliance.tests.web import Worker, shape
from delegation import services as delegation
from delegation.token_keys import keyring
from gateway.access.endpoints import EVALUATE_ALL
from tenancy.models import Tenant
from tenancy.tests.factories import make_expired_key, make_key, make_tenant

pytestmark = pytest.mark.usefixtures("committed")

CHANGING = {"x-ratelimit-remaining", "x-ratelimit-reset", "retry-after"}
CHANGING_FIELDS = {"id", "decision_id", "occurred_at", "risk_score"}

NAMES = [type(endpoint).__name__ for endpoint in ENDPOINTS]


@dataclass
class Good:
    """A request that succeeds."""

    method: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    def with_headers(self, **more: str) -> Headers:
        """Its headers with others changed; an empty value takes one away."""
        named = {name.replace("_", "-"): value for name, value in more.items()}
        found = {"host": "testserver", **self.headers, **named}
        if self.body:
            found.setdefault("content-length", str(len(self.body)))
        return [(name, value) for name, value in found.items() if value]

    def sending(self, body: bytes) -> Headers:
        """Its headers for another body."""
        length = ("content-length", str(len(body)))
        return [pair for pair in self.with_headers() if pair[0] != "content-length"] + [length]


@pytest.fixture
def tenant() -> Tenant:
    """A tenant, with a key for delegation tokens."""
    delegation.bootstrap(now=now())
    return make_tenant()


@pytest.fixture(params=ENDPOINTS, ids=NAMES)
def endpoint(request: pytest.FixtureRequest) -> Endpoint[Any, Any]:
    found: Endpoint[Any, Any] = request.param
    return found


@pytest.fixture
def good(endpoint: Endpoint[Any, Any], tenant: Tenant) -> Good:
    agent = make_certified_agent(tenant, metadata={"permitted_actions": ["read"]})
    as_json = {"content-type": "application/json"}
    key = {"authorization": f"Bearer {make_key(tenant)}"}
    serial = agent.certificates.get().serial_number
    act = {
        "subject": {"type": "agent", "id": agent.did},
        "action": {"name": "read"},
        "resource": {"type": "record", "id": "1"},
    }
    return {
        "RecordEvent": Good(
            "POST",
            "/v1/events",
            orjson.dumps({"agentId": str(agent.id), "action_type": "api_call", "details": {"a": [1.5, "é"]}}),
            {**as_json, **key},
        ),
        "VerifyCertificate": Good("GET", f"/v1/verify/{serial}"),
        "Authorize": Good(
            "GET",
            "/v1/gateway/authorize",
            headers={**key, "x-service-cert-serial": serial, "x-service-action": "read"},
        ),
        "Evaluate": Good("POST", "/access/v1/evaluation", orjson.dumps(act), {**as_json, **key}),
        "EvaluateAll": Good(
            "POST",
            "/access/v1/evaluations",
            orjson.dumps({**act, "evaluations": [{"subject": {"type": "certificate", "id": serial}}]}),
            {**as_json, **key},
        ),
    }[type(endpoint).__name__]


@pytest.fixture
def fast() -> Iterator[Worker]:
    with closing(Worker()) as worker:
        yield worker


@pytest.fixture
def plain() -> Iterator[Worker]:
    with closing(Worker(with_fast_path=False)) as worker:
        yield worker


def settled(body: bytes) -> Any:
    """The body without what no two requests have in common."""
    return _settled(orjson.loads(body)) if body else None


def _settled(found: Any) -> Any:
    if isinstance(found, list):
        return [_settled(one) for one in found]
    if not isinstance(found, dict):
        return found
    return {
        name: type(one).__name__ if name in CHANGING_FIELDS else _settled(one) for name, one in found.items()
    }


def assert_alike(
    fast: Worker, plain: Worker, method: str, path: str, headers: Headers, body: bytes = b""
) -> Answer:
    """Both entrances' answer."""
    quick, slow = (worker.run(worker.exchange(method, path, headers, body)) for worker in (fast, plain))
    case = method, path, headers, body[:80]

    assert shape(quick, changing=CHANGING) == shape(slow, changing=CHANGING), case
    assert settled(quick.body) == settled(slow.body), case
    found: Answer = quick
    return found


def test_good_request_is_answered_by_the_fast_path_as_by_the_view(
    fast: Worker, plain: Worker, endpoint: Endpoint[Any, Any], good: Good
) -> None:
    answer = assert_alike(fast, plain, good.method, good.path, good.with_headers(), good.body)

    assert (answer.status, fast.seen_by_view, plain.seen_by_view) == (endpoint.status, 0, 1)


HARMLESS = {
    "cookie": "sessionid=x; csrftoken=x", "accept": "text/html;q=0.1", "if-none-match": "*",
    "range": "bytes=0-1", "origin": "https://x.example", "x-http-method-override": "DELETE",
    "x-forwarded-proto": "https", "x-forwarded-for": "192.0.2.1", "x-forwarded-host": "evil.example",
    "user-agent": "",
}  # fmt: skip


def test_unknown_query_parameter_is_refused_by_both(
    fast: Worker, plain: Worker, endpoint: Endpoint[Any, Any], good: Good
) -> None:
    if not endpoint.path.startswith("/v1/"):
        pytest.skip("the standard of the path ignores what it does not know")
    for query in ("frob=1", "limit=1&frob=", "frob=%00", "frob"):
        answer = assert_alike(
            fast, plain, good.method, f"{good.path}?{query}", good.with_headers(), good.body
        )

        assert answer.status == 400, query
        assert b"frob" in answer.body, query


def test_headers_that_mean_nothing_here_change_nothing(
    fast: Worker, plain: Worker, endpoint: Endpoint[Any, Any], good: Good
) -> None:
    for header in HARMLESS.items():
        headers = good.with_headers(**dict([header]))

        answer = assert_alike(fast, plain, good.method, good.path, headers, good.body)

        assert (answer.status, fast.seen_by_view) == (endpoint.status, 0), header


HOSTILE_HEADERS: list[dict[str, str]] = [
    {"host": "evil.example"}, {"host": ""}, {"host": "testserver:80:80"}, {"authorization": ""},
    {"authorization": "Basic eDp5"}, {"authorization": "Bearer nonsense"}, {"authorization": "Bearer"},
    {"authorization": "Bearer service_live_" + "x" * 43}, {"authorization": "Bearer service_test_é"},
    {"authorization": "bearer service_live_x y"},
    {"content-type": ""}, {"content-type": "text/plain"},
    {"content-type": "application/json; charset=latin-1"},
    {"content-type": "APPLICATION/JSON"}, {"content-type": "application/x-ndjson"}, {"idempotency-key": "é"},
    {"idempotency-key": ""}, {"idempotency-key": "x" * 256},
]  # fmt: skip


def test_hostile_headers_are_judged_alike(fast: Worker, plain: Worker, good: Good) -> None:
    for more in HOSTILE_HEADERS:
        assert_alike(fast, plain, good.method, good.path, good.with_headers(**more), good.body)


def test_header_that_is_there_twice_is_judged_alike(fast: Worker, plain: Worker, good: Good) -> None:
    for count, name in enumerate(["x-a", "authorization", "content-type", "host", "cookie"], 1):
        headers = [*good.with_headers(), (name, "1"), (name, "2")]

        assert_alike(fast, plain, good.method, good.path, headers, good.body)

        assert fast.seen_by_view == count, name


METHODS = ["HEAD", "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get"]


def test_methods_are_judged_alike(fast: Worker, plain: Worker, good: Good) -> None:
    for method in METHODS:
        assert_alike(fast, plain, method, good.path, good.with_headers(), good.body)


def test_head_is_answered_by_the_fast_path_like_get(
    fast: Worker, endpoint: Endpoint[Any, Any], good: Good
) -> None:
    if endpoint.method != "GET":
        pytest.skip("takes no GET")
    get, head = (
        fast.run(fast.exchange(method, good.path, good.with_headers())) for method in ("GET", "HEAD")
    )

    assert (head.status, fast.seen_by_view) == (endpoint.status, 0)
    assert shape(head, changing=CHANGING) == shape(get, changing=CHANGING)


SUFFIXES = [
    "/", "//", "/x", "?", "?a=b&a=c", "?limit=0", "?limit=2&limit=3", "?%00", "?é", "?" + "a=1&" * 30, "%00",
    "\n", " ", "é", "?format=xml", ";x", "?before=%ff", "?at=2020-01-01", "?at=2999-01-01",
]  # fmt: skip


def test_odd_paths_and_queries_are_judged_alike(fast: Worker, plain: Worker, good: Good) -> None:
    for suffix in SUFFIXES:
        assert_alike(fast, plain, good.method, good.path + suffix, good.with_headers(), good.body)


BODIES = [
    b"", b"  ", b"{", b"[]", b"null", b"1", b"[" * 5_000, b"\xff", b'{"a": NaN}', b'{"a": 1, "a": 2}', b"{}",
    b'{"action_type": "nonsense"}', b'{"details": {"a": "\\ud800"}}', b'{"agent_id": "x"}',
    b'{"details": "' + b"x" * LARGEST_BODY + b'"}', b"a=%00",
]  # fmt: skip


def test_odd_bodies_are_judged_alike(fast: Worker, plain: Worker, good: Good) -> None:
    for body in BODIES:
        assert_alike(fast, plain, good.method, good.path, good.sending(body), body)


def test_key_without_the_scope_and_one_that_expired_are_refused_alike(
    fast: Worker, plain: Worker, endpoint: Endpoint[Any, Any], good: Good, tenant: Tenant
) -> None:
    if endpoint.scope is None:
        pytest.skip("anyone may call")
    callers = ((make_key(tenant, ["audit:read"]), Forbidden()), (make_expired_key(tenant), Unauthorized()))
    for key, error in callers:
        headers = good.with_headers(authorization=f"Bearer {key}")

        answer = assert_alike(fast, plain, good.method, good.path, headers, good.body)

        assert answer.status == error.status


def test_exhausted_limit_is_refused_alike(
    fast: Worker, plain: Worker, endpoint: Endpoint[Any, Any], good: Good, settings: Any
) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, endpoint.bucket: 2}

    answers = [assert_alike(fast, plain, good.method, good.path, good.with_headers(), good.body)]
    answers.append(assert_alike(fast, plain, good.method, good.path, good.with_headers(), good.body))

    assert [answer.status for answer in answers] == [endpoint.status, 429]
    assert fast.seen_by_view == 0


def ask(worker: Worker, good: Good, body: bytes) -> tuple[int, dict[str, str]]:
    """The status and the headers of an answer."""
    answer = worker.run(worker.exchange(good.method, good.path, good.sending(body), body))
    return answer.status, {name.lower(): value for name, value in answer.headers}


def test_body_counts_by_its_octets_at_both_entrances(
    fast: Worker, plain: Worker, endpoint: Endpoint[Any, Any], good: Good, settings: Any
) -> None:
    if endpoint.method != "POST":
        pytest.skip("has no body")
    counted = {}
    for octets in (4_000, 5_000, 20_000):
        body = good.body.ljust(octets)
        for worker in (fast, plain):
            one, two = (ask(worker, good, body) for _ in range(2))
            left = [int(headers["x-ratelimit-remaining"]) for _, headers in (one, two)]
            counted[octets, worker is fast] = left[0] - left[1]

    assert list(counted.values()) == [1, 1, 2, 2, 5, 5]


@pytest.mark.parametrize("endpoint", [EVALUATE_ALL], ids=["EvaluateAll"])
def test_each_evaluation_counts_at_both_entrances(
    fast: Worker, plain: Worker, good: Good, settings: Any
) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "gateway": 250}
    body = orjson.dumps({**orjson.loads(good.body), "evaluations": [{}] * 100})

    answers = [ask(worker, good, body) for worker in (fast, plain, fast, plain)]

    assert [status for status, _ in answers] == [200, 200, 429, 429]
    assert [headers["x-ratelimit-remaining"] for _, headers in answers[:2]] == ["150", "50"]
    assert fast.seen_by_view == 0


def test_quota_of_octets_is_kept_at_both_entrances(
    fast: Worker, plain: Worker, endpoint: Endpoint[Any, Any], good: Good, settings: Any
) -> None:
    if endpoint.method != "POST" or endpoint.bucket not in COUNTED_BY_OCTETS:
        pytest.skip("stores no body")
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "octets": 2 * len(good.body)}

    answers = [ask(worker, good, good.body) for worker in (fast, plain, fast)]

    assert [status for status, _ in answers] == [endpoint.status, endpoint.status, 429]
    assert answers[-1][1]["x-ratelimit-limit"] == str(2 * len(good.body))


def test_unknown_things_are_refused_alike(fast: Worker, plain: Worker, good: Good) -> None:
    for environment in Environment:
        unknown = format_serial(new_serial(environment))
        assert_alike(fast, plain, "GET", f"/v1/verify/{unknown}", [("host", "testserver")])
    body = orjson.dumps({"agent_id": str(new_id()), "action_type": "api_call"})
    assert_alike(fast, plain, good.method, good.path, good.sending(body), body)


def test_reserved_parameters_are_the_paths_of_other_endpoints(endpoint: Endpoint[Any, Any]) -> None:
    if not endpoint.path.endswith("/"):
        assert endpoint.reserved == frozenset()
        return
    folder = endpoint.path.lstrip("/")
    routes = [route for route, _ in api_routes() if "<" not in route]

    assert endpoint.reserved == {route.removeprefix(folder) for route in routes if route.startswith(folder)}


def test_endpoint_whose_database_sessions_died_answers_the_next_request(
    fast: Worker, endpoint: Endpoint[Any, Any], good: Good
) -> None:
    for _ in range(3):
        answer = fast.run(fast.exchange(good.method, good.path, good.with_headers(), good.body))
        assert (answer.status, fast.seen_by_view) == (endpoint.status, 0)
        end_sessions()
        keyring.forget()
