"""One POST to real receivers on loopback, well and badly behaved."""

import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from compliance.outbound import http_client
from compliance.outbound.addresses import UrlPolicy
from compliance.outbound.http_client import Outcome, RequestOptions
from compliance.outbound.tests import receivers
from compliance.outbound.tests.receivers import Receiver, answer, receiving
from compliance.tests.waiting import eventually

OPTIONS = RequestOptions(UrlPolicy(allow_http=True, allow_private=True), timeout_seconds=30.0)
HURRIED = replace(OPTIONS, timeout_seconds=0.4)
STRICT = replace(OPTIONS, policy=UrlPolicy(allow_http=True))


def send(
    receiver_or_url: Receiver | str, options: RequestOptions = OPTIONS, body: bytes = b'{"a":1}'
) -> Outcome:
    url = receiver_or_url if isinstance(receiver_or_url, str) else receiver_or_url.url
    return http_client.send(url, body=body, headers={"Content-Type": "application/json"}, options=options)


def test_answer_is_kept_and_the_bytes_arrive_unchanged() -> None:
    body = '{"b": "\u00e9",  "a":1}'.encode()
    with receiving(answer(200, b"thanks")) as receiver:
        began = time.monotonic()
        outcome = send(receiver, body=body)
        took = time.monotonic() - began

    assert outcome.succeeded
    assert (outcome.response_status, outcome.response_body, outcome.error) == (200, "thanks", None)
    assert 0 < outcome.duration.total_seconds() <= took
    (received,) = receiver.received
    assert received.request_line == "POST /hook HTTP/1.1"
    assert received.body == body
    assert received.headers["content-type"] == "application/json"
    assert received.headers["content-length"] == str(len(body))
    assert received.headers["host"] == f"127.0.0.1:{receiver.port}"


@pytest.mark.parametrize("statuses", [(100,), (102,), (103, 103), (100, 103, 102), (199,)])
def test_interim_answers_are_not_the_answer(statuses: tuple[int, ...]) -> None:
    interim = b"".join(b"HTTP/1.1 %d Soon\r\nLink: </a>\r\n\r\n" % status for status in statuses)

    def script(connection: socket.socket, receiver: Receiver) -> None:
        connection.sendall(interim)
        answer(201, b"done")(connection, receiver)

    with receiving(script) as receiver:
        outcome = send(receiver)

    assert (outcome.response_status, outcome.response_body, outcome.error) == (201, "done", None)


def test_interim_answers_for_ever_end_at_the_deadline() -> None:
    def script(connection: socket.socket, receiver: Receiver) -> None:
        while not receiver.stopping.wait(0.01):
            connection.sendall(b"HTTP/1.1 102 Soon\r\n\r\n")

    with receiving(script) as receiver:
        outcome = send(receiver, HURRIED)

    assert not outcome.succeeded
    assert "Timed out" in str(outcome.error)


@pytest.mark.parametrize(
    ("status", "value", "seconds"),
    [
        (503, "120", 120),
        (429, "7", 7),
        (503, "9" * 400, 3600),
        (503, "Fri, 31 Dec 2199 23:59:59 GMT", 3600),
        (503, "Fri, 31 Dec 1999 23:59:59 GMT", 0),
        (503, "soon", 0),
        (503, "-5", 0),
        (503, "Fri, 99 Dec 2199 23:59:59 GMT", 0),
        (500, "120", 0),
        (200, "120", 0),
    ],
)
def test_retry_after_of_a_busy_receiver(status: int, value: str, seconds: int) -> None:
    with receiving(answer(status, b"", f"Retry-After: {value}")) as receiver:
        outcome = send(receiver)

    assert (outcome.response_status, outcome.retry_after.total_seconds()) == (status, seconds)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_a_success(status: int) -> None:
    with receiving(answer(status, b"")) as receiver:
        outcome = send(receiver)

    assert outcome.succeeded
    assert outcome.response_status == status


@pytest.mark.parametrize("status", [300, 304, 400, 401, 404, 410, 429, 500, 503])
def test_any_other_status_is_a_failure(status: int) -> None:
    with receiving(answer(status, b"")) as receiver:
        outcome = send(receiver)

    assert not outcome.succeeded
    assert (outcome.response_status, outcome.error) == (status, None)


def test_redirect_is_not_followed() -> None:
    with receiving(answer(200)) as aim, receiving(answer(302, b"moved", f"Location: {aim.url}")) as receiver:
        outcome = send(receiver)

    assert not outcome.succeeded
    assert (outcome.response_status, outcome.response_body) == (302, "moved")
    assert aim.received == []


@pytest.mark.parametrize("script", [receivers.huge, receivers.huge_redirect])
def test_endless_body_is_cut_at_4_kb_and_read_no_further(script: receivers.Script) -> None:
    with receiving(script) as receiver:
        outcome = send(receiver)

    assert outcome.response_body is not None
    assert len(outcome.response_body) == 4096
    # The body would go on beyond the deadline.
    assert outcome.error is None


def test_body_that_is_no_text_is_kept_as_storable_text() -> None:
    with receiving(answer(200, b"a\x00b\xff" + b"\xfe" * 5000)) as receiver:
        outcome = send(receiver)

    assert outcome.response_body is not None
    assert outcome.response_body.startswith("a\ufffdb\ufffd")
    assert "\x00" not in outcome.response_body
    assert len(outcome.response_body.encode()) <= 4096


@pytest.mark.parametrize("script", [receivers.silence, receivers.drip_headers, receivers.drip_body])
def test_deadline_covers_the_whole_answer(script: receivers.Script) -> None:
    with receiving(script) as receiver:
        outcome = send(receiver, HURRIED)

    assert not outcome.succeeded
    assert outcome.error == "Timed out: no complete answer within 0.4 s"
    assert 0.35 < outcome.duration.total_seconds() < receivers.HANG_SECONDS / 10


def test_status_of_an_answer_that_never_ended_is_kept() -> None:
    def has_status() -> bool:
        """On a busy machine the status may come too late."""
        return send(receiver, HURRIED).response_status == 200

    with receiving(receivers.drip_body) as receiver:
        assert eventually(has_status)


def test_deadline_covers_sending() -> None:
    # Nobody reads: the kernel's buffers fill, and the send can't end.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        outcome = send(f"http://127.0.0.1:{listener.getsockname()[1]}/", HURRIED, body=b"x" * 20_000_000)

    # Without a deadline it would never end.
    assert outcome.error == "Timed out: no complete answer within 0.4 s"


def test_deadline_covers_name_resolution() -> None:
    release = threading.Event()

    def slow(host: str, port: int) -> list[str]:
        release.wait(receivers.HANG_SECONDS)
        return ["127.0.0.1"]

    outcome = send("http://hooks.example.com/", replace(HURRIED, resolver=slow))
    release.set()

    assert outcome.error == "Timed out: no complete answer within 0.4 s"
    assert outcome.duration.total_seconds() < receivers.HANG_SECONDS / 10


def test_dead_address_leaves_time_for_the_living() -> None:
    # A listener with a full backlog neither accepts nor refuses.
    with (
        receiving(answer(200), host="127.0.0.1") as receiver,
        socket.socket() as deaf,
        socket.socket() as filler,
    ):
        deaf.bind(("127.0.0.2", receiver.port))
        deaf.listen(0)
        filler.setblocking(False)
        filler.connect_ex(("127.0.0.2", receiver.port))
        time.sleep(0.05)
        options = replace(
            OPTIONS, timeout_seconds=1.0, resolver=lambda host, port: ["127.0.0.2", "127.0.0.1"]
        )
        # On a busy machine the half that is left may be too short.
        assert eventually(lambda: send(f"http://hooks.example.com:{receiver.port}/", options).succeeded)


@pytest.mark.parametrize("script", [receivers.reset, receivers.cut_short])
def test_broken_connection_is_a_failure(script: receivers.Script) -> None:
    with receiving(script) as receiver:
        outcome = send(receiver)

    assert not outcome.succeeded
    assert outcome.error == "Connection closed before a complete answer came"


def test_nonsense_is_a_failure() -> None:
    with receiving(receivers.nonsense) as receiver:
        outcome = send(receiver)

    assert outcome.error is not None
    assert outcome.error.startswith("No valid HTTP answer")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\r\n\r\n",
        b"\x16\x03\x01\x00\xff",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 99 OK\r\n\r\n",
        b"HTTP/1.1 1000 OK\r\n\r\n",
        b"HTTP/1.1 200 " + b"x" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nok",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://[::1\r\nContent-Encoding: gzip\r\n\r\nno gzip",
    ],
)
def test_hostile_answers_are_failures_and_never_exceptions(raw: bytes) -> None:
    with receiving(lambda connection, receiver: connection.sendall(raw)) as receiver:
        outcome = send(receiver)

    assert not outcome.succeeded


def test_refused_connection_is_a_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    outcome = send(f"http://127.0.0.1:{port}/")

    assert outcome.error == "Connection refused"
    assert outcome.response_status is None


def test_unknown_name_is_a_failure() -> None:
    def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    outcome = send("http://hooks.example.com/", replace(OPTIONS, resolver=unknown))

    assert outcome.error == "The host's name could not be resolved"


def test_name_that_leads_to_a_private_address_is_not_connected_to() -> None:
    with receiving(answer(200)) as receiver:
        outcome = send(
            f"http://hooks.example.com:{receiver.port}/",
            replace(STRICT, resolver=lambda host, port: ["127.0.0.1"]),
        )

    assert outcome.error == (
        "The host resolves to no public address; webhooks are sent to public addresses only"
    )
    assert receiver.connections == 0


def test_rebinding_name_is_resolved_once_and_its_judged_address_used() -> None:
    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.9"]

    with receiving(answer(200)) as receiver:
        url = f"http://hooks.example.com:{receiver.port}/"
        outcome = send(url, replace(OPTIONS, resolver=rebinding))

    assert outcome.succeeded
    assert asked == ["hooks.example.com"]
    assert receiver.received[0].headers["host"] == f"hooks.example.com:{receiver.port}"


def test_url_registered_under_a_looser_policy_is_refused_when_sent() -> None:
    with receiving(answer(200)) as receiver:
        outcome = send(receiver, STRICT)

    assert outcome.error == "must lead to a public address"
    assert receiver.connections == 0


def test_proxies_and_credentials_of_the_process_are_ignored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    with receiving(answer(200)) as receiver, receiving(answer(200)) as proxy:
        monkeypatch.setenv("NETRC", str(netrc))
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        outcome = send(receiver)

    assert outcome.succeeded
    assert proxy.connections == 0
    assert "authorization" not in receiver.received[0].headers


def test_ipv6_receiver_is_reached() -> None:
    with receiving(answer(200), host="::1") as receiver:
        outcome = send(receiver)

    assert outcome.succeeded
    assert receiver.received[0].headers["host"] == f"[::1]:{receiver.port}"
