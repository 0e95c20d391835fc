"""Ids of requests: strictly read, made where they are missing or bad, handed on with a span of their own."""

from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from compliance.observing import correlation, redaction

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"

BAD_IDS = {
    "empty": "",
    "too long": "a" * 129,
    "begins with a dash": "-a",
    "a newline": "a\nb",
    "a trailing newline": "a\n",
    "spaces": "a b",
    "another script's digits": "١٢٣",
    "markup": "<a>",
    "an API key": "service_live_" + "x" * 43,
    "a JWT": "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln",
}
BAD_PARENTS = {
    "empty": "",
    "capitals": PARENT.upper(),
    "no trace": f"00-{'0' * 32}-{SPAN}-01",
    "no span": f"00-{TRACE}-{'0' * 16}-01",
    "version ff": f"ff-{TRACE}-{SPAN}-01",
    "version 00 with more": f"{PARENT}-x",
    "short": PARENT[:-1],
    "no dashes": PARENT.replace("-", ""),
    "a later version without a dash": f"01-{TRACE}-{SPAN}-01x",
    "a newline": f"{PARENT}\n",
    "spaces": f" {PARENT}",
}


def test_ids_of_the_caller_are_kept_under_a_new_span() -> None:
    found = correlation.begin([("x-request-id", "order-7.a_B"), ("traceparent", PARENT)])

    assert (found.request_id, found.trace_id, found.is_sampled) == ("order-7.a_B", TRACE, True)
    assert found.span_id != SPAN
    assert correlation.parse_traceparent(found.traceparent) == (TRACE, found.span_id, 1)


def test_missing_ids_are_made_and_differ() -> None:
    first, second = correlation.begin([]), correlation.begin([])

    assert correlation.is_request_id(first.request_id)
    assert correlation.parse_traceparent(first.traceparent) == (first.trace_id, first.span_id, 0)
    assert not {first.request_id, first.trace_id, first.span_id} & {
        second.request_id,
        second.trace_id,
        second.span_id,
    }


@pytest.mark.parametrize("kind", BAD_IDS)
def test_bad_request_id_is_replaced(kind: str) -> None:
    found = correlation.begin([("x-request-id", BAD_IDS[kind])])

    assert found.request_id != BAD_IDS[kind]
    assert correlation.is_request_id(found.request_id)


@pytest.fixture
def password(settings: Settings) -> Iterator[str]:
    settings.EMAIL_HOST_PASSWORD = "20305678"
    redaction.configured.cache_clear()
    yield settings.EMAIL_HOST_PASSWORD
    redaction.configured.cache_clear()


def test_nobody_can_guess_a_setting_by_the_ids_that_come_back(password: str) -> None:
    assert correlation.begin([("x-request-id", f"a{password}b")]).request_id == f"a{password}b"
    assert password not in redaction.redact(f"the id a{password}b")


@pytest.mark.parametrize("kind", BAD_PARENTS)
def test_bad_traceparent_begins_a_trace(kind: str) -> None:
    found = correlation.begin([("traceparent", BAD_PARENTS[kind])])

    assert not found.is_sampled
    assert found.trace_id not in (TRACE, "0" * 32)


def test_ids_sent_twice_are_not_taken() -> None:
    twice = [("x-request-id", "a"), ("x-request-id", "a"), ("traceparent", PARENT), ("traceparent", PARENT)]

    found = correlation.begin(twice)

    assert found.request_id != "a"
    assert found.trace_id != TRACE


def test_later_version_is_read_as_far_as_known() -> None:
    assert correlation.parse_traceparent(f"01-{TRACE}-{SPAN}-03-more") == (TRACE, SPAN, 3)
