"""Addresses for webhooks that lead where none may: refused when they are registered, or judged when resolved.

Nothing is sent: the webhooks are inactive at once, and the stack has no sender. Hosts are literal addresses,
but for a few names, which registering does not resolve.
"""

import ipaddress
import random
from collections.abc import Iterator

from bench.attack.core import Siege
from bench.attack.invariants import check
from bench.attack.wire import Line, Reply, call
from bench.attack.world import World
from compliance.outbound.addresses import UrlPolicy, UrlRefused, check_url, permitted

METADATA = "169.254.169.254"
# Never to be reached, not even by a development stack, which may reach its own machine.
NEVER = (
    *(METADATA, "169.254.170.2", "169.254.0.1", "0.0.0.0", "224.0.0.1", "239.255.255.250"),  # noqa: S104
    *("168.63.129.16", "fd00:ec2::254", "fe80::1", "ff02::1", "::", "100.100.100.200"),
)
# To be reached by a development stack only.
PRIVATE = (
    "127.0.0.1", "127.1.2.3", "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "192.0.0.1",
    "198.18.0.1", "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1",
    "::1", "fc00::1", "fd12:3456::1", "fec0::1", "2001:db8::1", "2002:7f00:1::", "2001::1", "64:ff9b::7f00:1",
    "64:ff9b:1::1", "3fff::1", "100::1", "::ffff:127.0.0.1", "::127.0.0.1", "::ffff:10.0.0.1", "5f00::1",
)  # fmt: skip
BAD_FORMS = (
    "ftp://127.0.0.1/", "file:///etc/passwd", "gopher://127.0.0.1:6379/_INFO", "javascript:alert(1)",
    "data:,x", "unix:///tmp/socket", "//127.0.0.1/", "127.0.0.1", "http:127.0.0.1", "http:/127.0.0.1",
    "http://", "http:///x", "http://user@127.0.0.1/", "http://a:b@127.0.0.1/", "http://127.0.0.1@127.0.0.2/",
    "http://@127.0.0.1/", "http://127.0.0.1#@203.0.113.5/", "http://127.0.0.1/#f", "http://127.0.0.1/#",
    "http://127.0.0.1\\@127.0.0.2/", "http://127.0.0.1:0/", "http://127.0.0.1:65536/", "http://127.0.0.1:-1/",
    "http://127.0.0.1:x/", "http://127.0.0.1:\u0661/", "http://127.0.0.1 /", " http://127.0.0.1/",
    "http://127.0.0.1/\r\nX: y", "http://127.0.0.1/\x00", "http://\u2460\u2461\u2466.0.0.1/",
    "http://\uff11\uff12\uff17.0.0.1/", "http://é.example/", "http://127.0.0.1\u3002evil/", "http://[::1",
    "http://::1/", "http://[::1]x/", "http://[fe80::1%25eth0]/", "http://[::1%lo]/", "http://[127.0.0.1]/",
    "http://[v1.x]/", "http://[]/", "http://.../", "http://a..b/", "http://-a-/", "http://a_b!/",
    "http://" + "a" * 64 + ".example/", "http://" + "a." * 130 + "example/",
    "http://127.0.0.1/" + "x" * 2_100, "http://%31%32%37.0.0.1/", "http://127.0.0.1%2f@evil/",
    "http://127.0.0.1%00/", "HTTP://", "http://0x7f.1/", "http://127.1/", "http://1/", "http://0/",
    "http://0x/", "http://1.2.3.4.5/",
)  # fmt: skip


def run(siege: Siege, world: World) -> None:
    """Register and change webhooks to each address; then hold the policies against a table of addresses."""
    _policies(siege)
    key = world.keys.test
    with Line(siege) as line:
        body = {"url": "http://127.0.0.1:9/", "events": ["certificate.expired"]}
        made = line.ask(call("POST", "/v1/webhooks", key=key, body=body))
        if made.status != 201:
            siege.report("a webhook on loopback is refused in development", "POST /v1/webhooks", str(made))
            return
        hook = f"/v1/webhooks/{made.data['id']}"
        line.ask(call("PATCH", hook, key=key, body={"active": False}))
        hostile = list(_hostile(siege.random(), more=siege.pick(short=60, long=1_500)))
        for name, url in siege.within(hostile, "addresses"):
            for method, path in (("POST", "/v1/webhooks"), ("PATCH", hook)):
                reply = line.ask(call(method, path, key=key, body={**body, "url": url}))
                _judge(
                    siege, line, key, reply, name=name, url=url,
                    where=f"{method} {path.replace(hook, '/v1/webhooks/{webhook_id}')}",
                )  # fmt: skip


def _judge(siege: Siege, line: Line, key: str, reply: Reply, *, name: str, url: str, where: str) -> None:
    check(siege, reply, repr(url), where=where)
    if reply.status == 400:
        return
    siege.report(f"an address is taken: {name}", where, f"{url!r}: {reply.status}")
    if reply.status == 201:
        line.ask(call("DELETE", f"/v1/webhooks/{reply.data['id']}", key=key))


def _hostile(chance: random.Random, *, more: int) -> Iterator[tuple[str, str]]:
    """What every policy refuses: hosts never reachable, numbers that hide a host, no proper forms."""
    for host in NEVER:
        for port in ("", ":80", ":8080"):
            yield "never reachable", f"http://{_bracketed(host)}{port}/latest/meta-data/"
    for url in BAD_FORMS:
        yield "no proper form", url
    hosts = [ipaddress.IPv4Address(text) for text in (METADATA, "127.0.0.1", "10.0.0.1")]
    hosts += [ipaddress.IPv4Address(chance.getrandbits(32)) for _ in range(more // 10)]
    for number in hosts:
        for spelled in _spelled(number):
            yield "a number that hides a host", f"http://{spelled}/"
    for host6 in NEVER[-4:]:
        if ":" in host6:
            full = ipaddress.IPv6Address(host6)
            yield "never reachable, written out", f"http://[{full.exploded}]/"
            yield "never reachable, in capitals", f"http://[{full.exploded.upper()}]/"
    mapped = int(ipaddress.IPv4Address(METADATA))
    yield "mapped", f"http://[::ffff:{mapped >> 16:x}:{mapped & 0xFFFF:x}]/"
    yield "mapped", f"http://[::ffff:{METADATA}]/"


def _spelled(address: ipaddress.IPv4Address) -> Iterator[str]:
    """Decimal, octal, hexadecimal, short and mixed spellings, which no plain dotted address is."""
    number, parts = int(address), [int(part) for part in str(address).split(".")]
    yield str(number)
    yield hex(number)
    yield f"0{number:o}"
    yield f"0X{number:X}"
    yield ".".join(f"0x{part:x}" for part in parts)
    yield ".".join(f"0{part:o}" for part in parts)
    yield ".".join(f"{part:04d}" for part in parts)
    yield f"{parts[0]}.{number & 0xFFFFFF}"
    yield f"{parts[0]}.{parts[1]}.{number & 0xFFFF}"
    yield f"0x{parts[0]:x}.{number & 0xFFFFFF}"
    yield f"{number + (1 << 32)}"
    yield f"{number}."


def _policies(siege: Siege) -> None:
    """What each policy lets a name resolve to, as the sender asks at each connection."""
    production, development = UrlPolicy(), UrlPolicy(allow_http=True, allow_private=True)
    for policy, name, hosts in (
        (production, "production", (*NEVER, *PRIVATE)),
        (development, "development", NEVER),
    ):
        for host in hosts:
            siege.sent()
            for kind, judge in (("resolved", _resolves), ("written", _is_written)):
                if judge(host, policy):
                    siege.report(
                        f"{name} lets a webhook go there, {kind}", "compliance.outbound.addresses", host
                    )


def _resolves(host: str, policy: UrlPolicy) -> bool:
    try:
        return bool(permitted([host], policy))
    except UrlRefused:
        return False


def _is_written(host: str, policy: UrlPolicy) -> bool:
    try:
        check_url(f"https://{_bracketed(host)}/", policy)
    except UrlRefused:
        return False
    return True


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
