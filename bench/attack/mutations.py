"""Changes by chance to a valid request: its body, headers, query, path or method."""

import json
from random import Random
from typing import Any
from urllib.parse import quote

from bench.attack.routes import Route, valid_call
from bench.attack.values import LARGEST_BODY, TEXTS, changed, garbled, hostile_bodies
from bench.attack.wire import Call
from bench.attack.world import Holdings

QUERY_NAMES = (
    *("limit", "before", "band", "action_type", "agent_id", "status", "environment", "at", "event_type"),
    *("actor_type", "type", "event", "format", "page", "x"),
)
ODD_HEADERS = (
    ("Accept", "text/html"), ("Accept", "*/*;q=x"), ("Accept", ","), ("Accept", "application/did"),
    ("Accept", "a" * 3_000), ("Accept", "application/pkix-crl;q=0"), ("Accept-Language", "x" * 500),
    ("Accept-Encoding", "gzip, br, zstd"), ("Content-Encoding", "gzip"), ("Content-Encoding", "x"),
    ("Content-Language", "\u00e9"), ("Cookie", "sessionid=x; csrftoken=y; messages=z"), ("Cookie", "=;;="),
    ("Cookie", "sessionid=" + "a" * 4_000), ("Host", "elsewhere.example"), ("Host", ""), ("Host", "a b"),
    ("Host", "127.0.0.1:abc"), ("Host", "[::1"), ("X-Forwarded-For", "1.2.3.4, x"),
    ("X-Forwarded-For", "\u0661"), ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "evil.example"),
    ("X-HTTP-Method-Override", "DELETE"), ("X-Original-URL", "/admin/"), ("Range", "bytes=0-1"),
    ("If-None-Match", "*"), ("If-None-Match", '"x'), ("If-Modified-Since", "x"),
    ("If-Modified-Since", "Thu, 01 Jan 9999 00:00:00 GMT"), ("Origin", "null"), ("Referer", "\u202e"),
    ("Idempotency-Key", ""), ("Idempotency-Key", "k" * 256), ("Idempotency-Key", "\u00e9"),
    ("Idempotency-Key", "a\tb"), ("Authorization", ""), ("Authorization", "Bearer"),
    ("Authorization", "Bearer \u0661"), ("Authorization", "Basic Og=="),
    ("Authorization", "Bearer service_live_" + "x" * 5_000), ("Authorization", "Bearer service_test_"),
)  # fmt: skip
KINDS = (
    "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
    "application/json;charset=x", "application/x-ndjson", "application/xml", "",
    "application/json; charset=utf-16", "json", "a" * 2_000,
)  # fmt: skip


def hostile(chance: Random, route: Route, method: str, holdings: Holdings, key: str) -> tuple[Call, bool]:
    """A changed request, and whether it still asks the same endpoint by the same method."""
    asked = valid_call(route, method, holdings, key=key)
    is_same = True
    for _ in range(chance.choice([0, 1, 1, 1, 1, 2])):
        kind = chance.random()
        if asked.body is not None and kind < 0.55:
            asked = _other_body(chance, asked)
        elif kind < 0.7:
            asked = Call(asked.method, _with_query(chance, str(asked.target)), asked.headers, asked.body)
        elif kind < 0.87:
            asked = _other_headers(chance, asked)
        elif kind < 0.95:
            asked, is_same = (
                Call(asked.method, _other_path(chance, str(asked.target)), asked.headers, asked.body),
                False,
            )
        else:
            odd = chance.choice(["GET", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "POST", "TRACE", "FOO"])
            asked, is_same = Call(odd, asked.target, asked.headers, asked.body), False
    return asked, is_same


def _other_body(chance: Random, asked: Call) -> Call:
    body = asked.body or b""
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
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
    values = [
        *TEXTS, "0", "1", "-1", "101", "1.0", "1e3", "live", "test", "high", "true", "[]", "1,2", "\u0661",
    ]  # fmt: skip
    pairs = [
        f"{chance.choice(QUERY_NAMES)}={_percent(chance, chance.choice(values)[:3_000])}"
        for _ in range(chance.choice([1, 1, 2, 3]))
    ]
    return f"{target}{'&' if '?' in target else '?'}{chance.choice(['&', '&', ';']).join(pairs)}"


def _other_headers(chance: Random, asked: Call) -> Call:
    if asked.body is not None and chance.random() < 0.3:
        headers = [pair for pair in asked.headers if pair[0] != "Content-Type"]
        return Call(
            asked.method, asked.target, [*headers, ("Content-Type", chance.choice(KINDS))], asked.body
        )
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
            _percent(chance, chance.choice(TEXTS)[:2_000]), text.upper(), text.replace("-", ""), text + "%00",
            text + "%2F..", "..", "%2e%2e", "", text + "/", text[:-1] + quote("\u0661"), "{" + text + "}",
            quote(f"urn:uuid:{text}"), "f" * 40, "00000000-0000-0000-0000-000000000000", "%ff%fe", "%",
        ]
    )  # fmt: skip
    return "/".join(parts) + (f"?{query}" if query else "")


def _percent(chance: Random, text: str) -> str:
    octets = text.encode("utf-8", "surrogatepass")
    return quote(octets, safe=chance.choice(["", "/:,;+=&"]))
