"""Requests that RFC 9112 forbids or barely allows: what is sent, how it ends, what may come back."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

CRLF = b"\r\n"
ANY_REFUSAL = frozenset({400, 405, 408, 411, 413, 414, 417, 426, 431, 501, 505})


class End(Enum):
    """What the sender does once all is sent."""

    WAIT = auto()
    HALF_CLOSE = auto()
    CLOSE = auto()
    RESET = auto()


@dataclass(frozen=True)
class Case:
    """One conversation. `allowed`: statuses of the first answer; none at all only with `may_be_silent`.

    `is_whole`: the body's end is seen, so the event may be stored; else nothing may be, nor the key claimed.
    `answers`: how many answers a sound server gives at most, where more would tell of a smuggled request.
    """

    name: str
    octets: bytes
    allowed: frozenset[int]
    end: End = End.WAIT
    is_whole: bool = False
    may_be_silent: bool = True
    answers: int = 1
    method: str = "POST"


@dataclass(frozen=True)
class Frame:
    """The parts of the request that the cases are made from."""

    host: bytes
    key: bytes
    claim: bytes
    body: bytes
    lines: bytes

    def head(self, *more: bytes, path: bytes = b"/v1/events", kind: bytes = b"application/json") -> bytes:
        """A POST's header section with further lines."""
        usual = (
            *(b"POST " + path + b" HTTP/1.1", b"Host: " + self.host, b"Authorization: Bearer " + self.key),
            *(b"Content-Type: " + kind, b"Idempotency-Key: " + self.claim),
        )
        return CRLF.join([*usual, *more, b"", b""])

    def get(self, *more: bytes, line: bytes = b"GET /health/live HTTP/1.1", host: bool = True) -> bytes:
        """A GET without a body."""
        return CRLF.join([line, *([b"Host: " + self.host] if host else []), *more, b"", b""])

    @property
    def length(self) -> bytes:
        return b"Content-Length: %d" % len(self.body)

    @property
    def whole_chunks(self) -> bytes:
        return b"%x\r\n%b\r\n0\r\n\r\n" % (len(self.body), self.body)


CHUNKED = b"Transfer-Encoding: chunked"
REFUSED = ANY_REFUSAL
STORED = frozenset({201})
OK = frozenset({200})


def cases(frame: Frame) -> Iterator[Case]:
    """All of them; the claim and the marker in the body are the frame's."""
    yield from _cut_bodies(frame)
    yield from _bad_chunks(frame)
    yield from _good_chunks(frame)
    yield from _lengths(frame)
    yield from _both_framings(frame)
    yield from _bad_headers(frame)
    yield from _request_lines(frame)
    yield from _large(frame)
    yield from _other_protocols(frame)
    yield from _smuggled(frame)


def _cut_bodies(frame: Frame) -> Iterator[Case]:
    """A body that ends before its end, in each way a sender can go away."""
    body, half = frame.body, len(frame.body) // 2
    batch = frame.lines
    size = b"%x\r\n" % len(body)
    ndjson = frame.head(CHUNKED, path=b"/v1/events/batch", kind=b"application/x-ndjson")
    plain, chunked = frame.head(frame.length), frame.head(CHUNKED)
    shapes = (
        ("a length, nothing sent", plain), ("a length, half sent", plain + body[:half]),
        ("a length, one octet short", plain + body[:-1]),
        ("a length one too long", frame.head(b"Content-Length: %d" % (len(body) + 1)) + body),
        ("no chunk", chunked), ("half a chunk", chunked + size + body[:half]),
        ("a chunk without its end", chunked + size + body),
        ("a chunk, no last chunk", chunked + size + body + CRLF),
        ("a last chunk without its end", chunked + size + body + CRLF + b"0\r\n"),
        ("half a chunk's size", chunked + size + body + CRLF + b"1"),
        ("a trailer without its end", chunked + size + body + CRLF + b"0\r\nX-T: 1\r\n"),
        ("NDJSON, no last chunk", ndjson + b"%x\r\n%b\r\n" % (len(batch), batch)),
        ("NDJSON, half a line", ndjson + b"%x\r\n%b" % (len(batch) * 2, batch)),
    )  # fmt: skip
    for end in (End.HALF_CLOSE, End.CLOSE, End.RESET):
        for name, octets in shapes:
            yield Case(f"cut off: {name}, {end.name.lower()}", octets, REFUSED, end=end)


def _bad_chunks(frame: Frame) -> Iterator[Case]:
    body, head = frame.body, frame.head(CHUNKED)
    good = b"%x\r\n%b\r\n" % (len(body), body)
    ndjson = frame.head(CHUNKED, path=b"/v1/events/batch", kind=b"application/x-ndjson")
    lines = b"%x\r\n%b\r\n" % (len(frame.lines), frame.lines)
    for name, rest in (
        ("letters", b"zz\r\n"), ("minus", b"-1\r\n"), ("0x", b"0x10\r\n"), ("empty", b"\r\n"),
        ("a space", b" 5\r\n"), ("huge", b"f" * 17 + CRLF), ("overflow", b"10000000000000000\r\n"),
        ("plus", b"+5\r\n"), ("NUL", b"5\0\r\n"), ("underscore", b"1_0\r\n"), ("a comma", b"5,5\r\n"),
        ("bare CR", b"5\rx"), ("full width", b"\xef\xbc\x95\r\n"),
    ):  # fmt: skip
        yield Case(f"chunk size: {name}", head + good + rest + b"0\r\n\r\n", REFUSED)
        yield Case(f"chunk size: {name}, NDJSON", ndjson + lines + rest + b"0\r\n\r\n", REFUSED)
    yield Case("chunk longer than its size", head + b"%x\r\n%bxx\r\n0\r\n\r\n" % (len(body), body), REFUSED)
    yield Case("chunk data ends in bare LF", head + b"%x\r\n%b\n0\r\n\r\n" % (len(body), body), REFUSED)
    yield Case("chunk extension without end", head + b"%x;" % len(body) + b"a" * 200_000, REFUSED)
    yield Case("huge chunk extension", head + b"%x;" % len(body) + b"a" * 200_000 + CRLF + good[4:], REFUSED)


def _good_chunks(frame: Frame) -> Iterator[Case]:
    """What the grammar allows is taken."""
    body, head = frame.body, frame.head(CHUNKED)
    singles = b"".join(b"1\r\n%c\r\n" % octet for octet in body) + b"0\r\n\r\n"
    size = b"%x" % len(body)
    for name, chunks in (
        ("whole", frame.whole_chunks),
        ("octet by octet", singles),
        ("capitals and zeros before", b"000" + size.upper() + CRLF + body + b"\r\n0000\r\n\r\n"),
        ("an extension", size + b";a=b\r\n" + body + b"\r\n0;c\r\n\r\n"),
        ("a trailer", size + CRLF + body + b"\r\n0\r\nX-T: 1\r\n\r\n"),
        ("a trailer that would frame", size + CRLF + body + b"\r\n0\r\nContent-Length: 5\r\n\r\n"),
    ):
        # A server may refuse what is odd, but answers.
        allowed = STORED if name in ("whole", "octet by octet") else STORED | REFUSED
        yield Case(f"chunks: {name}", head + chunks, allowed, is_whole=True, may_be_silent=False)


def _lengths(frame: Frame) -> Iterator[Case]:
    body, count = frame.body, b"%d" % len(frame.body)
    for name, lines in (
        ("twice, different", (b"Content-Length: " + count, b"Content-Length: 3")),
        ("a list, different", (b"Content-Length: " + count + b", 3",)),
        *(
            (f"of {text!r}", (b"Content-Length: " + text,))
            for text in (b"-1", b"+5", b"0x10", b"5.0", b"a", b"", b"1e2")
        ),
        *(
            (f"of {text!r}", (b"Content-Length: " + text,))
            for text in (b"9" * 30, b"1 0", b"\xd9\xa1", b"1_0")
        ),
    ):
        yield Case(f"length {name}", frame.head(*lines) + body, REFUSED)
    for name, lines in (
        ("twice, same", (frame.length, frame.length)),
        ("a list, same", (frame.length + b", " + count,)),
    ):
        yield Case(f"length {name}", frame.head(*lines) + body, STORED | REFUSED, is_whole=True)
    yield Case("no length and no chunks", frame.head() + body, frozenset({400, 411, 415}), answers=2)
    yield Case(
        "a length on GET", frame.get(b"Content-Length: 2") + b"{}", OK | REFUSED, is_whole=True, method="GET"
    )


def _both_framings(frame: Frame) -> Iterator[Case]:
    """Transfer-Encoding beside Content-Length, and spellings that one hop reads and another does not."""
    for name, lines in (
        ("chunked, then length", (CHUNKED, b"Content-Length: 4")),
        ("length, then chunked", (b"Content-Length: 4", CHUNKED)),
        ("chunked, length 0", (CHUNKED, b"Content-Length: 0")),
    ):
        octets = frame.head(*lines) + frame.whole_chunks
        # RFC 9112 §6.3: the chunks count, or it is refused; the connection then ends.
        yield Case(f"both: {name}", octets, STORED | REFUSED, is_whole=True)
    for value in (
        b"xchunked", b"chunked, identity", b"identity", b"gzip", b"chunked, gzip", b"\x0bchunked",
        b"chun ked", b"", b'"chunked"', b"chunked;x",
    ):  # fmt: skip
        yield Case(
            f"encoding {value!r}", frame.head(b"Transfer-Encoding: " + value) + frame.whole_chunks, REFUSED
        )
    for spelled in (
        b"Transfer-Encoding ", b" Transfer-Encoding", b"Transfer-Encoding\t", b"Transfer\x00-Encoding",
    ):  # fmt: skip
        octets = frame.head(spelled + b": chunked") + frame.whole_chunks
        yield Case(f"header {spelled!r}", octets, REFUSED, answers=2)
    octets = frame.head(b"Transfer_Encoding: chunked") + frame.whole_chunks
    yield Case("header 'Transfer_Encoding'", octets, REFUSED | {415}, answers=2)
    # RFC 9112 §2.2 lets a bare LF end a line; read so, the chunks' end is seen.
    for name, line in (
        ("bare LF before it", b"X: y\nTransfer-Encoding: chunked"),
        ("chunked twice", CHUNKED + b", chunked"),
    ):
        yield Case(
            f"encoding, {name}", frame.head(line) + frame.whole_chunks, STORED | REFUSED, is_whole=True
        )


def _bad_headers(frame: Frame) -> Iterator[Case]:
    for name, line in (
        ("obs-fold", b"X-A: 1\r\n 2"), ("tab fold", b"X-A: 1\r\n\t2"), ("no colon", b"X-A"),
        ("empty name", b": 1"), ("a space in the name", b"X A: 1"), ("NUL in a name", b"X\0A: 1"),
        ("NUL in a value", b"X-A: a\0b"), ("bare CR", b"X-A: a\rb"), ("DEL", b"X-A: a\x7fb"),
        ("control", b"X-A: a\x01b"), ("octets in a name", b"X\xc3: 1"), ("a bracket", b"X[A]: 1"),
        ("space before the colon", b"X-A : 1"),
    ):  # fmt: skip
        allowed = REFUSED | (OK if name in ("obs-fold", "tab fold") else frozenset())
        yield Case(f"header: {name}", frame.get(line), allowed, method="GET")
    # Header values may have octets over 127; only those that need no reading do.
    yield Case("header: obs-text", frame.get(b"X-A: \xff\xfe"), OK | REFUSED, method="GET")
    yield Case("two Hosts", frame.get(b"Host: elsewhere.example"), REFUSED, method="GET")
    yield Case("no Host", frame.get(host=False), REFUSED, method="GET")
    for host in (b"", b"elsewhere.example", b"a b", b"127.0.0.1@evil", b"a/b", b"\xff"):
        octets = frame.get(b"Host: " + host, line=b"GET /v1/ca HTTP/1.1", host=False)
        yield Case(f"Host {host!r}", octets, REFUSED, method="GET")
    bare = frame.get().replace(CRLF, b"\n")
    yield Case("bare LF", bare, OK | REFUSED, method="GET")
    yield Case("empty lines first", CRLF * 3 + frame.get(), OK | REFUSED, method="GET")


def _request_lines(frame: Frame) -> Iterator[Case]:
    absent = REFUSED | {404}
    for line in (
        *(b"GET  /health/live HTTP/1.1", b"GET /health/live  HTTP/1.1", b"GET /v1/events# HTTP/1.1"),
        *(b"GET /health/live RTSP/1.0", b"SOURCE /health/live ICE/1.0"),
    ):
        yield Case(f"line {line!r}", frame.get(line=line), REFUSED, method=line.split()[0].decode())
    for line in (
        b"GET /health/live HTTP/1.1 x", b"GET", b"GET /health/live", b" GET /health/live HTTP/1.1",
        b"GET /health/live HTTP/1.9", b"GET /health/live HTTP/2.0", b"GET /health/live http/1.1",
        b"GET /health/live HTTP/11", b"GET health/live HTTP/1.1", b"GET /a b HTTP/1.1", b"GET /\0 HTTP/1.1",
        b"GET /\xff HTTP/1.1", b"G\0T /health/live HTTP/1.1", b"GET /%00 HTTP/1.1",
        b"G(T /health/live HTTP/1.1", b"\xff\xff / HTTP/1.1", b"{} /health/live HTTP/1.1",
        b"GET /%zz HTTP/1.1", b"GET * HTTP/1.1", b"CONNECT 127.0.0.1:80 HTTP/1.1", b"CONNECT / HTTP/1.1",
        b"GET //etc/passwd HTTP/1.1", b"GET /static/../manage.py HTTP/1.1",
        b"GET /static/%2e%2e/manage.py HTTP/1.1",
    ):  # fmt: skip
        yield Case(f"line {line!r}", frame.get(line=line), absent | {401}, method="GET")
    for method in (b"TRACE", b"PROPFIND", b"get", b"PRI", b"M" * 5_000):
        octets = frame.get(line=method + b" /v1/agents HTTP/1.1")
        yield Case(f"method {method[:12]!r}", octets, REFUSED | {401}, method=method[:12].decode())
    absolute = b"GET http://" + frame.host + b"/health/live HTTP/1.1"
    yield Case("absolute form", frame.get(line=absolute), OK, may_be_silent=False, method="GET")
    other = b"GET http://elsewhere.example/v1/ca HTTP/1.1"
    # RFC 9112 §3.2.2: the target's authority counts, not the Host line; neither leads elsewhere.
    yield Case("absolute form, other host", frame.get(line=other), OK | REFUSED, method="GET")
    yield Case("asterisk form", frame.get(line=b"OPTIONS * HTTP/1.1"), absent | OK | {204}, method="OPTIONS")


def _large(frame: Frame) -> Iterator[Case]:
    million = b"a" * 1_000_000
    for name, octets, status in (
        ("a line of 100 KB", frame.get(line=b"GET /" + b"a" * 100_000 + b" HTTP/1.1"), {414, 404, 400}),
        ("a line of 1 MB", frame.get(line=b"GET /" + million + b" HTTP/1.1"), {414, 400, 431}),
        ("a query of 1 MB", frame.get(line=b"GET /v1/ca?" + million + b" HTTP/1.1"), {414, 400, 431}),
        ("a header of 1 MB", frame.get(b"X-A: " + million), {431, 400}),
        ("1,000 headers", frame.get(*(b"X-%d: 1" % number for number in range(1_000))), {431, 400}),
        ("50,000 headers", frame.get(*(b"X-%d: 1" % number for number in range(50_000))), {431, 400}),
        ("a cookie of 100 KB", frame.get(b"Cookie: " + million[:100_000]), {431, 400, 200}),
        ("a header's name of 100 KB", frame.get(million[:100_000] + b": 1"), {431, 400}),
    ):
        yield Case(name, octets, frozenset(status), method="GET")
    large = b'{"x":"' + b"a" * (1024 * 1024) + b'"}'
    octets = frame.head(b"Content-Length: %d" % len(large)) + large
    yield Case("a body over 1 MiB", octets, frozenset({413}), may_be_silent=False)
    chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(large), large)
    yield Case(
        "a body over 1 MiB in chunks", frame.head(CHUNKED) + chunks, frozenset({413}), may_be_silent=False
    )
    announced = frame.head(b"Content-Length: 99999999999")
    yield Case("a length of 100 GB", announced + b"{}", frozenset({413, 400, 408}), end=End.HALF_CLOSE)


def _other_protocols(frame: Frame) -> Iterator[Case]:
    for name, octets, allowed in (
        ("HTTP/0.9", b"GET /health/live\r\n\r\n", REFUSED),
        ("HTTP/1.0", b"GET /health/live HTTP/1.0\r\n\r\n", OK | REFUSED),
        ("HTTP/1.0 with Host", frame.get(line=b"GET /health/live HTTP/1.0"), OK),
        ("HTTP/2's preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0", REFUSED),
        (
            "upgrade to h2c",
            frame.get(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AA"),
            OK,
        ),
        ("upgrade to WebSocket", frame.get(b"Connection: Upgrade", b"Upgrade: websocket"), OK | REFUSED),
        ("a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64 + CRLF * 2, REFUSED),
        ("Redis", b"*1\r\n$4\r\nPING\r\n\r\n", REFUSED),
        ("PostgreSQL", b"\0\0\0\x08\x04\xd2\x16\x2f" + CRLF * 2, REFUSED),
        ("noise", bytes(range(256)) + CRLF * 2, REFUSED),
    ):
        yield Case(name, octets, frozenset(allowed), method="GET")
    expecting = frame.head(frame.length, b"Expect: 100-continue")
    yield Case("Expect: 100-continue", expecting + frame.body, STORED, is_whole=True, may_be_silent=False)
    odd = frame.head(frame.length, b"Expect: tea") + frame.body
    yield Case("Expect: something else", odd, STORED | {417, 400}, is_whole=True)


def _smuggled(frame: Frame) -> Iterator[Case]:
    """A second request hidden in the first one's body, or behind an error: answered once, or not at all."""
    inner = frame.get(line=b"GET /v1/ca HTTP/1.1")
    hidden = b"0\r\n\r\n" + inner
    for name, lines in (
        ("CL.TE", (b"Content-Length: %d" % len(hidden), CHUNKED)),
        ("TE.CL", (CHUNKED, b"Content-Length: 4")),
        ("TE.TE", (CHUNKED, b"Transfer-Encoding: x")),
        ("TE with a fold", (b"Transfer-Encoding:\r\n chunked", b"Content-Length: %d" % len(hidden))),
    ):
        yield Case(f"smuggled: {name}", frame.head(*lines) + hidden, REFUSED | {415}, answers=1)
    body = inner
    sent = frame.head(b"Content-Length: %d" % len(body)) + body
    yield Case("smuggled: in a length", sent, frozenset({400}), may_be_silent=False)
    behind = frame.get(b"X A: 1") + inner
    yield Case("pipelined: behind a malformed one", behind, REFUSED, method="GET")
    broken = frame.head(CHUNKED) + b"zz\r\n" + inner
    yield Case("pipelined: behind a malformed chunk", broken, REFUSED)
    three = frame.get() + frame.get(line=b"GET /none HTTP/1.1") + frame.get()
    yield Case("pipelined: an error in the middle", three, OK, answers=3, may_be_silent=False, method="GET")
