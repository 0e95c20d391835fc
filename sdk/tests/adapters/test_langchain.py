"""The callback handler with LangChain's own tools, retrievers and models."""

import copy
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import tool

from agentid.adapters.langchain import ReportingHandler
from tests.conftest import MakeReporter, Reported
from tests.served import Service

SECRET = "the customer's words"


@tool
def place_order(text: str) -> str:
    """Place an order."""
    if text == "fail":
        raise ValueError(SECRET)
    return SECRET


class Library(BaseRetriever):
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [Document(SECRET), Document(SECRET)]


def test_runs_are_reported_without_their_content(
    service: Service, reported: Reported, make_reporter: MakeReporter
) -> None:
    reporter = make_reporter(service.address)
    handler = ReportingHandler(reporter, tools={"place_order": "data_mutation"})
    config: Any = {
        "callbacks": [handler],
        "configurable": {"thread_id": "t1"},
        "metadata": {"thread_id": "t1"},
    }

    place_order.invoke({"text": SECRET}, config)
    with pytest.raises(ValueError, match=SECRET):
        place_order.invoke({"text": "fail"}, config)
    Library().invoke(SECRET, config)
    FakeListChatModel(responses=[SECRET]).invoke(SECRET, config)

    assert reporter.flush(30)
    found = [(event.action_type, event.details) for event in reported.events()]
    durations = [details.pop("duration_ms") for _, details in found]
    assert found[:3] == [
        ("data_mutation", {"tool": "place_order", "outcome": "succeeded"}),
        ("data_mutation", {"tool": "place_order", "outcome": "failed", "error": "ValueError"}),
        ("data_access", {"retriever": "Library", "outcome": "succeeded", "documents": 2}),
    ]
    assert (found[3][0], found[3][1]["outcome"]) == ("api_call", "succeeded")
    assert all(duration >= 0 for duration in durations)
    assert {event.session_id for event in reported.events()} == {"t1"}
    assert SECRET not in str(found)


def test_copied_handler_and_its_reporter_stay_the_same(make_reporter: MakeReporter) -> None:
    reporter = make_reporter("https://service.example")
    handler = ReportingHandler(reporter)

    assert copy.deepcopy({"it": handler, "reporter": reporter}) == {"it": handler, "reporter": reporter}
