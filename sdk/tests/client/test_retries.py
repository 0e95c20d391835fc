"""When a call is tried again."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from agentid import (
    Client,
    ConfigurationError,
    NotPossible,
    RateLimited,
    ServerFailed,
    Unavailable,
    Unreachable,
)
from agentid.client.generated.operations import Decisions
from agentid.client.transport import Configuration, Request, Retries, carried_out, completed, retry_after
from agentid.keys import DpopKey
from tests.between import Canned, between

GET = Request("GET", "/x")
POST = Request("POST", "/x")
KEYED = Request("POST", "/x", key="")


def answer(status: int, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json={"error": "no"}, headers=named)


OK = httpx.Response(200, json={"a": 1})
RESET = httpx.ReadError("reset")


def play(
    request: Request,
    *replies: httpx.Response | httpx.HTTPError,
    retries: Retries | None = None,
    clock: Callable[[], float] = lambda: 0.0,
) -> tuple[object, list[float], list[str | None]]:
    """The result or error, the waits, and the keys that were sent."""
    waits: list[float] = []
    keys: list[str | None] = []
    left = list(replies)

    def once(request: Request) -> httpx.Response:
        keys.append(request.key)
        reply = left.pop(0)
        if isinstance(reply, httpx.HTTPError):
            raise reply
        return reply

    try:
        work = carried_out(request, retries or Retries(), once, waits.append, clock=clock)
        return completed(work), waits, keys
    except Exception as error:  # noqa: BLE001
        return error, waits, keys


@pytest.mark.parametrize("request_", [GET, KEYED], ids=["get", "keyed"])
@pytest.mark.parametrize("failure", [RESET, answer(503), answer(429)], ids=["reset", "503", "429"])
def test_what_may_be_repeated_is(request_: Request, failure: httpx.Response) -> None:
    result, waits, _ = play(request_, failure, failure, OK)

    assert result is OK
    assert 0.1 <= waits[0] <= 0.2 <= waits[1] <= 0.4


@pytest.mark.parametrize(
    ("failure", "kind"), [(RESET, Unreachable), (answer(503), Unavailable), (answer(429), RateLimited)]
)
def test_what_may_not_be_repeated_is_tried_once(failure: httpx.Response, kind: type[Exception]) -> None:
    result, waits, _ = play(POST, failure)

    assert isinstance(result, kind)
    assert waits == []


@pytest.mark.parametrize(
    ("request_", "headers", "tries"),
    [(KEYED, {"retry_after": "1"}, 2), (KEYED, {}, 1), (POST, {"retry_after": "1"}, 1)],
    ids=["own", "another content", "no key"],
)
def test_conflict_with_an_earlier_try_passes(request_: Request, headers: dict[str, str], tries: int) -> None:
    result, _, keys = play(request_, answer(409, **headers), OK)

    assert (result is OK, len(keys)) == (tries == 2, tries)


RECEIPT = {"context": {"approval": "receipt"}}


@pytest.mark.parametrize(
    ("more", "is_repeatable"),
    [({}, True), ({"context": {"details": {}}}, True), (RECEIPT, False), ({"evaluations": [RECEIPT]}, False)],
    ids=["bare", "other context", "receipt", "receipt of one of several"],
)
def test_receipt_is_sent_once(more: dict[str, Any], is_repeatable: bool) -> None:
    found = Decisions.evaluate_all.request(subject={"type": "agent", "id": "a"}, **more)

    assert found.may_repeat == is_repeatable


def test_all_tries_have_one_key() -> None:
    _, _, keys = play(KEYED, RESET, RESET, OK)

    assert len({*keys}) == 1
    assert keys[0]


def test_service_says_how_long_to_wait() -> None:
    _, waits, _ = play(GET, answer(429, retry_after="7"), OK)

    assert waits == [7.0]


def test_wait_beyond_the_whole_time_is_an_error_at_once() -> None:
    result, waits, _ = play(GET, answer(503, retry_after="61"))

    assert isinstance(result, Unavailable)
    assert (result.retry_after, waits) == (61.0, [])


@pytest.mark.parametrize(("status", "kind"), [(500, ServerFailed), (422, NotPossible)])
def test_other_refusals_are_not_repeated(status: int, kind: type[Exception]) -> None:
    result, _, _ = play(GET, answer(status))

    assert type(result) is kind


def test_tries_end() -> None:
    result, waits, keys = play(GET, *[RESET] * 5)

    assert isinstance(result, Unreachable)
    assert (len(waits), len(keys)) == (4, 5)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("Mon, 23 Nov 2026 12:00:30 GMT", 30.0),
        ("Mon, 23 Nov 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("Fri, 31 Dec 9999 23:59:59 -2300", None),
        ("Mon, 01 Jan 99999999999 00:00:00 GMT", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(text: str, seconds: float | None) -> None:
    now = datetime(2026, 11, 23, 12, 0, 0, tzinfo=UTC)

    assert retry_after(answer(503, retry_after=text), now=now) == seconds


@pytest.mark.parametrize(
    "url",
    [
        "http://service.example",
        "ftp://service.example",
        "https://",
        "https://u:p@service.example",
        "service",
        "https://:p@service.example",
        "https://[bad",
        "https://service.example:x",
        "https://\0",
        "https://xn--a",
    ],
)
def test_unsafe_addresses_are_refused(url: str) -> None:
    with pytest.raises(ConfigurationError):
        Client(url)


def test_plain_http_is_for_this_machine_or_by_choice() -> None:
    assert Configuration("http://[::1]:8000").api_key is None
    assert Configuration("http://service.example", allow_http=True).allow_http


def proofs_sent(proof: Any) -> list[str]:
    quick = Retries(tries=3, first_wait=0.01)
    with between("", Canned(503)) as path, Client(path.address, "k", retries=quick) as client:
        with pytest.raises(Unavailable):
            client.delegation.issue("a", chain=[], proof=proof)
        return [each["dpop"] for each in path.seen]


def test_each_try_has_a_proof_of_its_own() -> None:
    sent = proofs_sent(DpopKey.generate().proof)

    assert len(sent) == len(set(sent)) == 3


def test_ready_made_proof_is_sent_once() -> None:
    assert proofs_sent("once") == ["once"]
