"""Connections as clients and attackers use them, octet by octet over real sockets (RFC 9112)."""

import gc
import json
import socket
import struct
import weakref
from collections.abc import Iterator

import pytest

from compliance.serving.http import connection, refusals
from compliance.serving.http.refusals import Refusal
from compliance.serving.tests.served import LARGEST, Served, parsed, read_all, serving
from compliance.tests.waiting import eventually

HEAD = b"POST /x HTTP/1.1\r\nHost: h\r\n"
UPGRADE = HEAD + b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
LAST = b"GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
MALFORMED_LINES = [
    line + b"Host: h\r\nA: GET /x HTTP/1.1\r\n\r\n"
    for line in (
        *(b"GET /x RTSP/1.0\r\n", b"OPTIONS /x RTSP/1.0\r\n", b"SOURCE /x ICE/1.0\r\n"),
        *(b"GET  /x HTTP/1.1\r\n", b"GET /x  HTTP/1.1\r\n", b"GET /x HTTP/1.1 \r\n", b" GET /x HTTP/1.1\r\n"),
        b"GET /x HTTP/1.1\n",
    )
]


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serving() as served:
        yield served


@pytest.fixture
def served(server: Served) -> Served:
    server.seen.clear()
    server.release.clear()
    return server


@pytest.mark.parametrize(
    ("octets", "length"),
    [
        (HEAD + b"Content-Length: 4\r\n\r\nabcd", 4),
        (HEAD + b"Content-Length: 0\r\n\r\n", 0),
        (HEAD + b"Content-Length: 00000000000000000004\r\n\r\nabcd", 4),
        (HEAD + b"\r\n", 0),
        (CHUNKED + b"2\r\nab\r\n2;x=y\r\ncd\r\n0\r\n\r\n", 4),
        (UPGRADE + b"Content-Length: 4\r\n\r\nabcd", 4),
        (
            HEAD
            + b"Upgrade: h2c\r\nConnection: Upgrade\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
            1,
        ),
        (CHUNKED + b"4\r\nabcd\r\n0\r\nHost: evil\r\nX-Trailer: 1\r\n\r\n", 4),
        (HEAD + b"Content-Length: %d\r\n\r\n" % LARGEST + b"a" * LARGEST, LARGEST),
    ],
)
def test_whole_request_is_answered(served: Served, octets: bytes, length: int) -> None:
    status, headers, body = parsed(served.tell(octets, half_close=True))

    assert (status, body) == (200, {"path": "/x", "length": length})
    assert headers["date"].endswith(" GMT")
    assert [value for name, value in served.seen[0].headers if name == "host"] == ["h"]


@pytest.mark.parametrize(
    "octets",
    [
        HEAD + b"Content-Length: 500\r\n\r\n{}",
        CHUNKED,
        CHUNKED + b"2\r\n{}",
        CHUNKED + b"2\r\n{}\r\n",
        CHUNKED + b"2\r\n{}\r\n0\r\n",
        CHUNKED + b"2\r\n{}\r\n0\r\nX-Trailer: 1\r\n",
        CHUNKED + b"2\r\n{}\r\nzz\r\n",
        CHUNKED + b"2\r\n{}x\r\n0\r\n\r\n",
        CHUNKED + b"2\r\n{}\r\n-1\r\n\r\n",
        CHUNKED + b"2\r\n{}\r\nfffffffffffffffff\r\n",
    ],
)
def test_body_without_an_end_is_a_400_and_never_handed_on(served: Served, octets: bytes) -> None:
    status, headers, body = parsed(served.tell(octets, half_close=True))

    assert (status, body) == (400, {"error": "The request body is cut short or its chunks are malformed"})
    assert headers["connection"] == "close"
    assert served.seen == []


@pytest.mark.parametrize("head", [HEAD + b"Content-Length: 500\r\n\r\n", CHUNKED + b"2\r\n"])
@pytest.mark.parametrize("resets", [False, True])
def test_sender_who_goes_away_is_forgotten(served: Served, head: bytes, resets: bool) -> None:
    with served.connect() as client:
        client.sendall(head + b"{}")
        if resets:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    answer = served.tell(LAST)

    assert parsed(answer)[0] == 200
    assert [request.path for request in served.seen] == ["/last"]


@pytest.mark.parametrize(
    "octets",
    [
        b"NONSENSE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /x HTTP/9.9\r\nHost: h\r\n\r\n",
        b"GET /x\r\n\r\n",
        b"GET /x\r\nHost: h\r\n\r\n",
        b"GET /x HTTP/2.0\r\nHost: h\r\n\r\n",
        b"BREW /x HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /x HTTP/1.1\r\nHost : h\r\n\r\n",
        b"GET /x HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n",
        b"GET /x HTTP/1.1\r\nHost: h\r\nA: \x00\r\n\r\n",
        b"GET /x HTTP/1.1\r\n\r\n",
        b"GET /x HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n",
        b"GET x HTTP/1.1\r\nHost: h\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
        b"CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n",
        HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
        HEAD + b"Content-Length: -2\r\n\r\n{}",
        HEAD + b"Content-Length: 000000000000000000002\r\n\r\n{}",
        HEAD + b"Content-Length: " + b"0" * 5_000 + b"2\r\n\r\n{}",
        HEAD + b"Content-Length: +2\r\n\r\n{}",
        HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n{}",
        HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}",
        HEAD + b"Transfer-Encoding: gzip\r\n\r\n{}",
        HEAD + b"Transfer-Encoding: chunked, gzip\r\n\r\n{}",
        HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n",
        HEAD + b"Host: h\r",
        b"GET /x#y HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET http://h/x?y#z HTTP/1.1\r\nHost: h\r\n\r\n",
        *MALFORMED_LINES,
    ],
)
def test_what_is_not_http_is_a_400_in_the_envelope(served: Served, octets: bytes) -> None:
    status, headers, body = parsed(served.tell(octets, half_close=True))

    assert (status, list(body), headers["content-type"]) == (400, ["error"], "application/json")
    assert served.seen == []


@pytest.mark.parametrize("line", MALFORMED_LINES)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_malformed_line_is_found_wherever_it_begins(served: Served, line: bytes, size: int) -> None:
    before = (
        b"\r\n"
        + HEAD
        + b"Content-Length: 19\r\n\r\nGET /x HTTP/1.1\r\n\r\n"
        + CHUNKED
        + b"1\r\na\r\n0\r\n\r\n"
    )
    octets = before + line
    with served.connect() as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(octets), size):
            try:
                client.sendall(octets[start : start + size])
            except OSError:
                break  # refused, and closed after lingering
        answers = read_all(client).split(b"HTTP/1.1 ")[1:]

    assert [answer[:3] for answer in answers] == [b"200", b"200", b"400"]
    assert [len(request.body) for request in served.seen] == [19, 1]


@pytest.mark.parametrize(
    ("octets", "expected"),
    [
        (b"GET /" + b"a" * connection.LARGEST_TARGET + b" HTTP/1.1\r\nHost: h\r\n\r\n", 414),
        (b"GET /" + b"a" * 200_000, 414),
        (HEAD + b"A: " + b"a" * connection.LARGEST_HEAD + b"\r\n\r\n", 431),
        (HEAD + b"A: " + b"a" * 2_000_000, 431),
        (HEAD + b"A: b\r\n" * connection.MOST_HEADERS + b"\r\n", 431),
        (HEAD + b"Content-Length: %d\r\n\r\n" % (LARGEST + 1) + b"a" * (LARGEST + 1), 413),
        (CHUNKED + b"%x\r\n" % (LARGEST + 1) + b"a" * (LARGEST + 1) + b"\r\n0\r\n\r\n", 413),
        (CHUNKED + b"1;" + b"x" * 3_000_000 + b"\r\na\r\n0\r\n\r\n", 413),
        (CHUNKED + b"1\r\na\r\n0\r\n" + b"X: y\r\n" * 500_000, 413),
        (HEAD + b"Expect: a-miracle\r\nContent-Length: 2\r\n\r\n{}", 417),
    ],
)
def test_what_is_too_much_is_refused_before_it_is_kept(served: Served, octets: bytes, expected: int) -> None:
    with served.connect() as client:
        for start in range(0, len(octets), 10_000):
            try:
                client.sendall(octets[start : start + 10_000])
            except OSError:
                break  # refused, and closed after lingering
        status, headers, body = parsed(read_all(client))

    assert (status, list(body), headers["connection"]) == (expected, ["error"], "close")
    assert served.seen == []


def test_requests_sent_together_are_answered_in_order(served: Served) -> None:
    paths = [f"/{number}" for number in range(20)]
    octets = b"".join(b"GET %s HTTP/1.1\r\nHost: h\r\n\r\n" % path.encode() for path in paths)

    answers = served.tell(octets + LAST).split(b"HTTP/1.1 ")[1:]

    assert [request.path for request in served.seen] == [*paths, "/last"]
    assert [parsed(b"HTTP/1.1 " + answer)[2]["path"] for answer in answers] == [*paths, "/last"]


def test_malformed_request_behind_a_good_one_costs_only_itself(served: Served) -> None:
    octets = b"GET /slow HTTP/1.1\r\nHost: h\r\n\r\nNONSENSE\r\n\r\n" + LAST
    with served.connect() as client:
        client.sendall(octets)
        eventually(lambda: bool(served.seen))
        served.release.set()
        answers = read_all(client).split(b"HTTP/1.1 ")[1:]

    assert [answer[:3] for answer in answers] == [b"200", b"400"]
    assert [request.path for request in served.seen] == ["/slow"]


def test_client_that_waits_for_100_continue_is_told_to_go_on(served: Served) -> None:
    with served.connect() as client:
        client.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n")
        interim = client.recv(1000)
        client.sendall(b"{}")
        status, _, body = parsed(read_all(client))

    assert interim == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert (status, body["length"]) == (200, 2)


def test_client_that_waits_for_100_continue_behind_another_request_is_told_too(served: Served) -> None:
    with served.connect() as client:
        client.sendall(
            b"GET /slow HTTP/1.1\r\nHost: h\r\n\r\n" + HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n"
            b"Connection: close\r\n\r\n"
        )
        eventually(lambda: bool(served.seen))
        served.release.set()
        found = b""
        while not found.endswith(b"HTTP/1.1 100 Continue\r\n\r\n"):
            found += client.recv(1000)
        client.sendall(b"{}")

        assert read_all(client).startswith(b"HTTP/1.1 200")


def test_what_is_sent_behind_a_request_that_takes_long_is_left_to_the_sender(served: Served) -> None:
    flood = b"GET /next HTTP/1.1\r\nHost: h\r\n\r\n" * 3_000_000
    with served.connect() as client:
        client.sendall(b"GET /slow HTTP/1.1\r\nHost: h\r\n\r\n")
        eventually(lambda: bool(served.seen))
        client.settimeout(1)
        with pytest.raises(TimeoutError):
            client.sendall(flood)

        assert parsed(served.tell(LAST))[0] == 200
        assert [request.path for request in served.seen] == ["/slow", "/last"]


def test_answer_that_nobody_reads_gives_its_connection_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "WRITE_SECONDS", 0.2)
    with serving(most_connections=1) as full, socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        deaf.connect(("127.0.0.1", full.port))
        deaf.sendall(LAST.replace(b"/last", b"/large"))
        eventually(lambda: bool(full.seen))

        assert eventually(lambda: parsed(full.tell(LAST))[0] == 200)


@pytest.mark.parametrize(
    "octets", [b"GET /x HTTP/1.1\r\nA: ", HEAD + b"A: b\r\n", CHUNKED + b"2\r\n{}\r\n0\r\nA: "]
)
def test_connection_that_was_lost_leaves_nothing_to_the_garbage_collector(octets: bytes) -> None:
    gc.disable()
    try:
        with serving() as served:
            listener = served.listener
            assert listener is not None
            with served.connect() as client:
                client.sendall(octets)
                assert eventually(lambda: len(listener._connections) == 1)
                kept = weakref.WeakSet(listener._connections)

            assert eventually(lambda: not kept)
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("request_line", "closes"),
    [
        (b"GET /x HTTP/1.0\r\n\r\n", True),
        (b"GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", False),
        (b"GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", True),
        (b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n", False),
        (UPGRADE + b"\r\n", False),
        (UPGRADE + b"Content-Length: 2\r\n\r\n{}", False),
    ],
)
def test_connection_is_kept_as_the_client_asks(served: Served, request_line: bytes, closes: bool) -> None:
    answer = served.tell(request_line + (b"" if closes else LAST))

    assert answer.count(b"HTTP/1.1 200") == (1 if closes else 2)


def test_head_is_answered_with_a_length_and_no_body(served: Served) -> None:
    answer = served.tell(b"HEAD /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")

    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-length: 27" in head
    assert body == b""


@pytest.mark.parametrize(
    ("more", "status"),
    [
        (b"\r\n", 400),
        (b"Host: h\r\nHost: h\r\n\r\n", 400),
        (b"Host: h\r\nContent-Length: 99999\r\n\r\n", 413),
        (b"Host: h\r\nContent-Length: 5\r\n\r\nab", 400),
        (b"Host: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"Host: h\r\nExpect: other\r\n\r\n", 417),
        (b"Host: h\r\nA: %s\r\n\r\n" % (b"a" * connection.LARGEST_HEAD), 431),
    ],
)
def test_head_that_is_refused_gets_no_body(served: Served, more: bytes, status: int) -> None:
    before = b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n"

    answers = served.tell(before + b"HEAD /x HTTP/1.1\r\n" + more, half_close=True)

    refused = b"HTTP/1.1 " + answers.split(b"HTTP/1.1 ")[2]
    head, _, body = refused.partition(b"\r\n\r\n")
    assert int(head.split()[1]) == status
    assert b"connection: close" in head
    assert body == b""


def test_refusal_of_what_is_no_request_has_a_body_behind_a_head_request_too(served: Served) -> None:
    answers = served.tell(b"HEAD /x HTTP/1.1\r\nHost: h\r\n\r\nnonsense\r\n\r\n", half_close=True)

    assert answers.endswith(b'{"error":"The request is not valid HTTP/1.1"}')


def test_request_that_is_refused_long_after_its_first_octets_is_refused_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection, "HOLD_SECONDS", 1e-6)
    statuses: list[int] = []
    with serving(refused=statuses.append) as served:
        answer = served.tell(CHUNKED + b"1\r\na\r\n" * 900 + b"zz\r\n")

    assert (parsed(answer)[0], statuses) == (400, [400])
    assert caplog.records == []


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"/a%20b/%C3%A9?x=%20&y", "/a b/Ã©", "x=%20&y"),
        (b"/a?b?c", "/a", "b?c"),
        (b"/%ff", "/ÿ", ""),
        (b"http://other:8000/a?b", "/a", "b"),
        (b"http://other", "/", ""),
    ],
)
def test_target_is_split_and_decoded_once(served: Served, target: bytes, path: str, query: str) -> None:
    served.tell(b"GET " + target + b" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")

    request = served.seen[0]
    assert (request.path, request.query) == (path, query)
    is_absolute = target.startswith(b"http")
    assert dict(request.headers)["host"].startswith("other" if is_absolute else "h")


def test_client_that_hangs_up_while_it_is_answered_disturbs_nobody(served: Served) -> None:
    with served.connect() as client:
        client.sendall(b"GET /slow HTTP/1.1\r\nHost: h\r\n\r\n")
        eventually(lambda: bool(served.seen))
    served.release.set()

    assert parsed(served.tell(LAST))[0] == 200


def is_answered(impatient: Served, octets: bytes, status: int) -> bool:
    """Whether this one answer comes; on a busy machine the connection may be closed before all is sent."""
    try:
        answer = impatient.tell(octets)
    except ConnectionError:
        return False
    return answer != b"" and parsed(answer)[0] == status


@pytest.mark.parametrize("octets", [b"POST /x HT", HEAD, HEAD + b"Content-Length: 5\r\n\r\n{", CHUNKED])
def test_client_that_stalls_is_answered_408(
    served: Served, monkeypatch: pytest.MonkeyPatch, octets: bytes
) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.1)

    with serving(body_seconds=0.1) as impatient:
        assert eventually(lambda: is_answered(impatient, octets, 408))

    assert impatient.seen == []


def test_idle_connection_is_closed_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "IDLE_SECONDS", 0.1)
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.1)

    with serving() as impatient:
        assert impatient.tell(b"") == b""
        assert eventually(lambda: is_answered(impatient, LAST.replace(b"close", b"keep-alive"), 200))


def test_slow_reader_gets_all_of_a_large_answer_and_holds_up_nobody(served: Served) -> None:
    octets = b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n" * 5_000
    with served.connect() as slow:
        slow.sendall(octets + LAST)

        assert parsed(served.tell(LAST))[0] == 200
        assert read_all(slow).count(b"HTTP/1.1 200") == 5_001


def test_every_refusal_has_the_form_of_its_path_and_the_standing_headers() -> None:
    found = [one for one in vars(refusals).values() if isinstance(one, Refusal)]

    assert len(found) == 13
    for refusal in found:
        said = json.loads(refusal.at("/v1/events").body)["error"]
        told = json.loads(refusal.at("/oauth/token").body)
        assert (set(told), told["error_description"]) == ({"error", "error_description"}, said)
        for answer in (refusal.envelope, refusal.oauth):
            assert answer.status == refusal.status
            assert ("x-content-type-options", "nosniff") in answer.headers


@pytest.mark.parametrize("target", [b"/oauth/token", b"/%6fauth/token?a", b"http://h/oauth/token"])
@pytest.mark.parametrize(
    ("more", "status"),
    [
        (b"Content-Length: 99999\r\n\r\n", 413),
        (b"Content-Length: 5\r\n\r\nab", 400),
        (b"Expect: other\r\n\r\n", 417),
        (b"Host: h\r\n\r\n", 400),
        (b"A: %s\r\n\r\n" % (b"a" * connection.LARGEST_HEAD), 431),
    ],
)
def test_oauth_clients_are_refused_in_their_form(
    served: Served, target: bytes, more: bytes, status: int
) -> None:
    found, _, body = parsed(
        served.tell(b"POST " + target + b" HTTP/1.1\r\nHost: h\r\n" + more, half_close=True)
    )

    assert (found, body["error"]) == (status, "invalid_request")
    assert body["error_description"]


def test_refusal_takes_nothing_from_the_request_before_it(served: Served) -> None:
    first = b"GET /oauth/token HTTP/1.1\r\nHost: h\r\nX-Request-Id: of-the-first\r\n\r\n"

    answers = served.tell(first + b"nonsense\r\n\r\n", half_close=True)

    assert answers.count(b"of-the-first") == 1
    assert answers.endswith(b'{"error":"The request is not valid HTTP/1.1"}')
