"""Functions and blocks that report themselves, and a reporter in an event loop."""

import asyncio
import inspect
from typing import Any

import pytest

from tests.conftest import MakeReporter, Reported
from tests.served import Service


@pytest.fixture
def details(service: Service, reported: Reported, make_reporter: MakeReporter) -> Any:
    reporter = make_reporter(service.address)

    def stored() -> list[dict[str, Any]]:
        assert reporter.flush(30)
        found = [event.details for event in reported.events()]
        assert all(one.pop("duration_ms") >= 0 for one in found)
        return found

    return reporter, stored


def test_function_reports_its_outcome_and_never_its_arguments(details: Any) -> None:
    reporter, stored = details

    @reporter.action("data_access", name="read_orders")
    def read(customer: str) -> str:
        if customer == "nobody":
            raise LookupError(customer)
        return customer

    assert read("anna") == "anna"
    with pytest.raises(LookupError):
        read("nobody")

    assert stored() == [
        {"tool": "read_orders", "outcome": "succeeded"},
        {"tool": "read_orders", "outcome": "failed", "error": "LookupError"},
    ]


def test_arguments_are_reported_if_asked_for(details: Any) -> None:
    reporter, stored = details

    @reporter.action("data_access", arguments=True)
    def read(customer: str, *, limit: int = 1) -> None:
        pass

    read("anna", limit=2)
    with pytest.raises(TypeError):
        read()

    name = f"{inspect.stack()[0].function}.<locals>.read"
    assert stored() == [
        {"arguments": {"customer": "anna", "limit": 2}, "callable": name, "outcome": "succeeded"},
        {"callable": name, "outcome": "failed", "error": "TypeError"},
    ]


def test_coroutine_reports_when_it_ends_and_each_call_by_itself(details: Any) -> None:
    reporter, stored = details

    @reporter.action("api_call", name="ask")
    async def ask(until: asyncio.Event) -> str:
        await until.wait()
        return "answer"

    async def play() -> list[str]:
        until = asyncio.Event()
        asks = [asyncio.create_task(ask(until)) for _ in range(3)]
        await asyncio.sleep(0)
        asks[0].cancel()
        until.set()
        return [one for one in await asyncio.gather(*asks, return_exceptions=True) if isinstance(one, str)]

    assert inspect.iscoroutinefunction(ask)
    assert asyncio.run(play()) == ["answer", "answer"]
    assert sorted(one["outcome"] for one in stored()) == ["cancelled", "succeeded", "succeeded"]


def test_block_adds_what_it_knows(details: Any) -> None:
    reporter, stored = details

    with reporter.action("data_mutation", name="write_orders") as noted:
        noted["rows"] = 3

    assert stored() == [{"rows": 3, "tool": "write_orders", "outcome": "succeeded"}]


def test_reporter_in_an_event_loop_flushes_at_the_end(
    service: Service, reported: Reported, make_reporter: MakeReporter
) -> None:
    async def play() -> None:
        async with make_reporter(service.address) as reporter:
            reporter.report("api_call", {"n": 1})

    asyncio.run(play())

    assert reported.numbers() == [1]
