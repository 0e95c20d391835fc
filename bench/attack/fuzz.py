"""Valid requests of every endpoint, changed by chance in body, headers, query, path and method.

Every answer is held against the invariants, and every acknowledged event is looked for at the end.
"""

import json
import threading
from random import Random
from typing import Any
from urllib.parse import quote

from bench.attack.core import Siege
from bench.attack.invariants import check
from bench.attack.routes import Route, api_routes, lacking, valid_call
from bench.attack.values import LARGEST_BODY, TEXTS, changed, garbled, hostile_bodies
from bench.attack.wire import Call, Garbled, Hang, Line, NoAnswer, Reply, call
from bench.attack.world import CannotBegin, Holdings, World, furnish

THREADS = 3
ANEW_EVERY = 400
"""Requests after which the things asked about are made anew: by then some are retired, revoked or deleted."""
QUERY_NAMES = (
    *("limit", "before", "band", "action_type", "agent_id", "status", "environment", "at", "event_type"),
    *("actor_type", "type", "event", "format", "page", "x"),
)
ODD_HEADERS = (
    *(("Accept", "text/html"), ("Accept", "*/*;q=x"), ("Accept", ","), ("Accept", "application/did"), ("Accept", "a" * 3_000)),
    *(("Accept", "application/pkix-crl;q=0"), ("Accept-Language", "x" * 500), ("Accept-Encoding", "gzip, br, zstd")),
    *(("Content-Encoding", "gzip"), ("Content-Encoding", "x"), ("Content-Language", "\u00e9")),
    *(("Cookie", "sessionid=x; csrftoken=y; messages=z"), ("Cookie", "=;;="), ("Cookie", "sessionid=" + "a" * 4_000)),
    *(("Host", "elsewhere.example"), ("Host", ""), ("Host", "a b"), ("Host", "127.0.0.1:abc"), ("Host", "[::1")),
    *(("X-Forwarded-For", "1.2.3.4, x"), ("X-Forwarded-For", "\u0661"), ("X-Forwarded-Proto", "https")),
    *(("X-Forwarded-Host", "evil.example"), ("X-HTTP-Method-Override", "DELETE"), ("X-Original-URL", "/admin/")),
    *(("Range", "bytes=0-1"), ("If-None-Match", "*"), ("If-None-Match", '"x'), ("If-Modified-Since", "x")),
    *(("If-Modified-Since", "Thu, 01 Jan 9999 00:00:00 GMT"), ("Origin", "null"), ("Referer", "\u202e")),
    *(("Idempotency-Key", ""), ("Idempotency-Key", "k" * 256), ("Idempotency-Key", "\u00e9"), ("Idempotency-Key", "a\tb")),
    *(("Authorization", ""), ("Authorization", "Bearer"), ("Authorization", "Bearer \u0661"), ("Authorization", "Basic Og==")),
    *(("Authorization", "Bearer service_live_" + "x" * 5_000), ("Authorization", "Bearer service_test_")),
)
KINDS = (
    *("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json;charset=x"),
    *("application/x-ndjson", "application/xml", "", "application/json; charset=utf-16", "json", "a" * 2_000),
)


class Ledger:
    """The events that were acknowledged, by the key that may see them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.events: dict[str, set[str]] = {}

    def note(self, key: str, reply: Reply) -> None:
        """Keep the ids of an answer that acknowledges events."""
        found = []
        if reply.status == 201 and isinstance(reply.data, dict):
            found = [reply.data.get("id")]
        elif reply.status == 200 and isinstance(reply.data, list):
            found = [item["data"]["id"] for item in reply.data if item.get("status") == 201]
        with self._lock:
            self.events.setdefault(key, set()).update(str(one) for one in found if one)


def run(siege: Siege, world: World) -> None:
    """So many requests in a few threads, then the events' roll call."""
    routes = api_routes()
    for name in lacking(routes):
        siege.report("no valid request is known", name, "add one to bench/attack/routes.py")
    documented = _documented(siege)
    ledger = Ledger()
    count = siege.pick(short=2_400, long=85_000) // THREADS
    siege.spread(
        lambda number: _work(siege, world, routes, documented, ledger, number=number, count=count), threads=THREADS
    )
    _roll_call(siege, ledger)


def _documented(siege: Siege) -> dict[tuple[str, str], frozenset[int]]:
    """The statuses that the description has for each operation."""
    with Line(siege, timeout=30) as line:
        described = line.ask(call("GET", "/v1/schema")).json
    return {
        (method.upper(), path): frozenset(int(status) for status in operation["responses"])
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
        if method != "parameters"
    }


def _work(
    siege: Siege,
    world: World,
    routes: list[Route],
    documented: dict[tuple[str, str], frozenset[int]],
    ledger: Ledger,
    *,
    number: int,
    count: int,
) -> None:
    chance = siege.random(number)
    pairs = [(route, method) for route in routes for method in route.actions]
    # What takes bodies has more to get wrong.
    weights = [4 if route.pattern in ("v1/events", "v1/events/batch") else 2 if method != "GET" else 1 for route, method in pairs]
    with Line(siege) as line:
        owned = {key: furnish(siege, line, key) for key in (world.keys.live, world.keys.test)}
        for turn in range(count):
            if siege.budget.is_over:
                return
            if turn % ANEW_EVERY == ANEW_EVERY - 1:
                owned = _furnished_anew(siege, line, owned)
            key = chance.choice(list(owned))
            route, method = chance.choices(pairs, weights)[0]
            asked, is_same = _hostile(chance, route, method, owned[key], key)
            where = f"{method} {route.path}"
            try:
                reply = line.ask(asked)
            except NoAnswer:
                siege.report("no answer", where, str(asked))
                continue
            except (Hang, Garbled) as error:
                line.close()
                siege.report(type(error).__name__, where, str(asked))
                continue
            statuses = documented.get((method, route.path)) if is_same else None
            check(siege, reply, asked, where=where, documented=statuses, is_bodiless=asked.method == "HEAD")
            if any(secret.encode() in reply.body for secret in world.secrets):
                siege.report("a key is told", where, str(asked))
            if route.pattern.startswith("v1/events") and method == "POST" and "review" not in route.pattern and is_same:
                ledger.note(key, reply)


def _furnished_anew(siege: Siege, line: Line, owned: dict[str, Holdings]) -> dict[str, Holdings]:
    try:
        return {key: furnish(siege, line, key) for key in owned}
    except CannotBegin as error:
        siege.report("a valid request is refused", "furnishing", str(error))
        return owned


def _hostile(chance: Random, route: Route, method: str, holdings: Holdings, key: str) -> tuple[Call, bool]:
    """A changed request, and whether it still asks the same endpoint by the same method."""
    asked = valid_call(route, method, holdings, key=key)
    is_same = True
    for _ in range(chance.choice([1, 1, 1, 2])):
        kind = chance.random()
        if asked.body is not None and kind < 0.55:
            asked = _other_body(chance, asked)
        elif kind < 0.7:
            asked = Call(asked.method, _with_query(chance, str(asked.target)), asked.headers, asked.body)
        elif kind < 0.87:
            asked = _other_headers(chance, asked)
        elif kind < 0.95:
            asked, is_same = Call(asked.method, _other_path(chance, str(asked.target)), asked.headers, asked.body), False
        else:
            odd = chance.choice(["GET", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "POST", "TRACE", "FOO"])
            asked, is_same = Call(odd, asked.target, asked.headers, asked.body), False
    return asked, is_same


def _other_body(chance: Random, asked: Call) -> Call:
    body = asked.body or b""
    try:
        value: Any = json.loads(body)
    except ValueError:
        return Call(asked.method, asked.target, asked.headers, garbled(chance, body))
    kind = chance.random()
    if kind < 0.75:
        text = json.dumps(changed(chance, value), ensure_ascii=chance.random() < 0.7)
        octets = text.encode("utf-8", "surrogatepass")
    elif kind < 0.9:
        octets = garbled(chance, body)
    else:
        octets = chance.choice(list(hostile_bodies(chance, value if isinstance(value, dict) else {"a": 1})))
    return Call(asked.method, asked.target, asked.headers, octets[: LARGEST_BODY + 20_000])


def _with_query(chance: Random, target: str) -> str:
    values = [*TEXTS, "0", "1", "-1", "101", "1.0", "1e3", "live", "test", "high", "true", "[]", "1,2", "\u0661"]
    pairs = [
        f"{chance.choice(QUERY_NAMES)}={_percent(chance, chance.choice(values)[:3_000])}"
        for _ in range(chance.choice([1, 1, 2, 3]))
    ]
    return f"{target}{'&' if '?' in target else '?'}{chance.choice(['&', '&', ';']).join(pairs)}"


def _other_headers(chance: Random, asked: Call) -> Call:
    if asked.body is not None and chance.random() < 0.3:
        headers = [pair for pair in asked.headers if pair[0] != "Content-Type"]
        return Call(asked.method, asked.target, [*headers, ("Content-Type", chance.choice(KINDS))], asked.body)
    name, value = chance.choice(ODD_HEADERS)
    headers = [pair for pair in asked.headers if pair[0] != name]
    return Call(asked.method, asked.target, [*headers, (name, value)], asked.body)


def _other_path(chance: Random, target: str) -> str:
    path, _, query = target.partition("?")
    parts = path.split("/")
    place = chance.randrange(1, len(parts))
    text = parts[place]
    parts[place] = chance.choice(
        [
            _percent(chance, chance.choice(TEXTS)[:2_000]),
            text.upper(),
            text.replace("-", ""),
            text + "%00",
            text + "%2F..",
            "..",
            "%2e%2e",
            "",
            text + "/",
            text[:-1] + quote("\u0661"),
            "{" + text + "}",
            quote(f"urn:uuid:{text}"),
            "f" * 40,
            "00000000-0000-0000-0000-000000000000",
            "%ff%fe",
            "%",
        ]
    )
    return "/".join(parts) + (f"?{query}" if query else "")


def _percent(chance: Random, text: str) -> str:
    octets = text.encode("utf-8", "surrogatepass")
    return quote(octets, safe=chance.choice(["", "/:,;+=&"]))


def _roll_call(siege: Siege, ledger: Ledger) -> None:
    """Every acknowledged event is listed; one that is not is asked for by its id."""
    with Line(siege, timeout=30) as line:
        for key, events in ledger.events.items():
            missing, cursor = set(events), ""
            while missing:
                page = line.ask(call("GET", f"/v1/events?limit=100{cursor}", key=key)).json
                missing -= {row["id"] for row in page["data"]}
                if not page.get("next_cursor"):
                    break
                cursor = f"&before={quote(page['next_cursor'])}"
            for event in missing:
                reply = line.ask(call("GET", f"/v1/events/{event}", key=key))
                if reply.status != 200:
                    siege.report("an acknowledged event is not stored", "POST /v1/events", f"{event}: {reply.status}")
                else:
                    siege.report("an acknowledged event is not listed", "GET /v1/events", event)
        siege.figures.append(f"fuzz: {sum(map(len, ledger.events.values())):,} acknowledged events, each found again")
