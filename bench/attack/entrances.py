"""The same request through both entrances: the fast path, and Django's view behind it.

A request with a header that is there twice is given to the view (compliance/serving/server.py); without it
the fast path answers. Status, body and headers must be the same but for ids, times and counters.
"""

import re
from collections.abc import Iterator

from bench.attack.core import Siege
from bench.attack.values import hostile_bodies, hostile_values
from bench.attack.wire import Call, Line, NoAnswer, Reply, call
from bench.attack.world import Holdings, World, furnish

TWICE = [("X-Harmless", "1"), ("X-Harmless", "1")]
_CHANGING = re.compile(
    rb'"(?:id|occurred_at|risk_score|risk_band|verified_at|checked_at|retrieved_at|next_cursor)":\s*'
    rb'(?:"[^"]*"|[0-9.eE+-]+|null)'
)
_UNCOUNTED = frozenset(
    {"x-ratelimit-remaining", "x-ratelimit-reset", "x-request-id", "date", "server", "connection"}
)


def run(siege: Siege, world: World) -> None:
    """Ask each question twice, once by each entrance."""
    with Line(siege) as line:
        live = furnish(siege, line, world.keys.live)
        test = furnish(siege, line, world.keys.test)
        asked = list(_questions(siege, world, live, test))
        if siege.is_short:
            asked = asked[:60] + siege.random("pick").sample(asked[60:], k=min(len(asked) - 60, 160))
        for question in siege.within(asked, "questions"):
            _compare(siege, line, question)


def _questions(siege: Siege, world: World, live: Holdings, test: Holdings) -> Iterator[Call]:
    """Requests to the endpoints of the fast path, the plain ones first."""
    yield from _verifications(live, test, world)
    yield from _pages(world, live)
    yield from _events(siege, world, live)


def _verifications(live: Holdings, test: Holdings, world: World) -> Iterator[Call]:
    colons = ":".join(re.findall("..", live.serial))
    for serial in (
        live.serial, test.serial, live.serial.upper(), colons, "0" * 40, "f" * 40, "00", "zz", "%00",
        live.serial + "0", "%30" * 40, "\u0661" * 40, live.serial[:-1], f"+{live.serial}", f" {live.serial}",
    ):  # fmt: skip
        for headers in (
            [], [("Cookie", "sessionid=x; csrftoken=y; messages=z")],
            [("Authorization", f"Bearer {world.keys.test}")],
            [("Authorization", "Bearer service_test_madeup")], [("Accept", "text/html")],
            [("X-Forwarded-For", "203.0.113.9")], [("X-Forwarded-Proto", "https")],
            [("Origin", "https://evil.example")],
        ):  # fmt: skip
            yield call("GET", f"/v1/verify/{_quoted(serial)}", headers=headers)
    for query in ("?at=2020-01-01T00:00:00Z", "?at=x", "?x=1", "?"):
        yield call("GET", f"/v1/verify/{live.serial}{query}")
    yield call("GET", f"/v1/verify/{live.serial}", headers=[("Host", "elsewhere.example")])
    yield call("GET", f"/v1/verify/{live.serial}", body=b"{}")


def _pages(world: World, live: Holdings) -> Iterator[Call]:
    for query in (
        "", "?limit=1", "?limit=0", "?limit=101", "?limit=-1", "?limit=x", "?limit=", "?limit=1&limit=2",
        "?band=low", "?band=none", "?band=", "?action_type=data_access", "?action_type=x", "?unknown=1",
        "?before=2020-01-01", "?before=x", "?before=", "?before=2026-01-01T00:00:00%2B00:00", "?before=%00",
        f"?agent_id={live.agent}", f"?agent_id={live.agent.upper()}", "?agent_id=x", "?agent_id=",
        "?limit=%D9%A1", "?limit=1%20", "?limit=+1", "?limit=1.0", "?limit=99999999999999999999",
    ):  # fmt: skip
        yield call("GET", f"/v1/events{query}", key=world.keys.test)
        yield call("GET", f"/v1/events{query}", key=world.keys.live)
    for headers in ([("Cookie", "sessionid=x")], [("Accept", "text/html")], [("Host", "elsewhere.example")]):
        yield call("GET", "/v1/events", key=world.keys.test, headers=headers)
    for key in _bad_keys(world):
        yield call("GET", "/v1/events?limit=1", headers=[("Authorization", key)])


def _bad_keys(world: World) -> tuple[str, ...]:
    live = world.keys.live
    return (
        "", "Bearer", "Bearer ", "Basic Zm9v", "Bearer service_live_x", "Bearer service_test_x", "bearer x",
        f"bearer {live}", f"Bearer  {live}", f"Bearer {live} ", f"Bearer {live}x", f"Bearer {live[:-1]}",
        live, f"Bearer {world.keys.revoked}", f"Bearer {world.keys.expired}", "Bearer " + "é" * 20,
        f"Bearer {world.keys.scoped['agents:read']}",
    )  # fmt: skip


def _events(siege: Siege, world: World, live: Holdings) -> Iterator[Call]:
    plain = {"agentId": live.agent, "actionType": "data_access", "details": {"tool": "read"}}
    key = world.keys.live
    yield call("POST", "/v1/events", key=key, body=plain)
    for headers in (
        [("Cookie", "sessionid=x; messages=y")], [("Accept", "text/html")],
        [("Content-Type", "application/json; charset=utf-8")], [("Content-Type", "APPLICATION/JSON")],
        [("Content-Type", "text/plain")], [("Content-Type", "application/json; charset=latin-1")],
        [("Host", "elsewhere.example")], [("Content-Encoding", "gzip")], [("X-Forwarded-Proto", "https")],
    ):  # fmt: skip
        yield call("POST", "/v1/events", key=key, body=plain, headers=headers)
    yield call("POST", "/v1/events?x=1", key=key, body=plain)
    for authorization in _bad_keys(world):
        yield call("POST", "/v1/events", headers=[("Authorization", authorization)], body=plain)
    for raw in hostile_bodies(siege.random("bodies"), plain):
        yield call("POST", "/v1/events", key=key, body=raw)
    values = list(hostile_values(siege.random("values")))
    for name in (
        "agentId", "actionType", "chainId", "decisionId", "sessionId", "occurredAt", "details", "agent_id",
        "more",
    ):  # fmt: skip
        for value in values:
            yield call("POST", "/v1/events", key=key, body={**plain, name: value})


def _compare(siege: Siege, line: Line, question: Call) -> None:
    where = f"{question.method} {str(question.target).partition('?')[0]}"
    where = re.sub(r"/v1/verify/.*", "/v1/verify/{serial}", where)
    try:
        # The first look-up of a key is the view's: both are asked once it is known.
        plain, doubled = line.ask(question), line.ask(_with_twice(question))
    except NoAnswer:
        siege.report("no answer", where, str(question))
        return
    differences = [
        name
        for name, first, second in (
            ("status", plain.status, doubled.status),
            ("body", _still(plain), _still(doubled)),
            ("headers", _headers(plain), _headers(doubled)),
        )
        if first != second
    ]
    if differences:
        odd = set(_headers(plain)) ^ set(_headers(doubled))
        siege.report(
            f"the entrances differ in {', '.join(differences)}",
            where,
            f"{question}: {sorted(odd)[:4]} {plain} but {doubled}",
        )


def _with_twice(question: Call) -> Call:
    return Call(question.method, question.target, [*question.headers, *TWICE], question.body)


def _still(reply: Reply) -> bytes:
    return _CHANGING.sub(b"", reply.body)


def _headers(reply: Reply) -> tuple[tuple[str, str], ...]:
    """Those that tell, in no order; an event's length changes with its score."""
    uncounted = _UNCOUNTED | ({"content-length"} if reply.status in (200, 201) else set())
    return tuple(sorted(pair for pair in reply.headers if pair[0] not in uncounted))


def _quoted(serial: str) -> str:
    return serial.replace(" ", "%20")
