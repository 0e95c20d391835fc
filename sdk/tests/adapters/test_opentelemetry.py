"""The span processor with OpenTelemetry's own tracer."""

import pytest
from opentelemetry.sdk.trace import TracerProvider

from agentid.adapters.opentelemetry import ReportingProcessor
from tests.conftest import MakeReporter, Reported
from tests.served import Service


def test_spans_of_generative_ai_are_reported(
    service: Service, reported: Reported, make_reporter: MakeReporter
) -> None:
    reporter = make_reporter(service.address)
    provider = TracerProvider()
    provider.add_span_processor(ReportingProcessor(reporter, tools={"place_order": "transaction_initiated"}))
    tracer = provider.get_tracer("test")
    name = "gen_ai.operation.name"

    with tracer.start_as_current_span("invoke_agent trader", attributes={name: "invoke_agent"}):
        chat = {name: "chat", "gen_ai.request.model": "m1", "gen_ai.conversation.id": "c1"}
        with tracer.start_as_current_span("chat m1", attributes=chat) as span:
            span.set_attribute("gen_ai.usage.input_tokens", 7)
            span.set_attribute("gen_ai.input.messages", "secret words")
        with tracer.start_as_current_span("retrieval", attributes={name: "retrieval"}):
            pass
        order = {name: "execute_tool", "gen_ai.tool.name": "place_order"}
        with (
            pytest.raises(ValueError, match="secret words"),
            tracer.start_as_current_span("execute_tool", attributes=order),
        ):
            raise ValueError("secret words")
    with tracer.start_as_current_span("GET /"):
        pass

    assert provider.force_flush(30_000)
    stored = reported.events()
    assert [(event.action_type, event.details["outcome"]) for event in stored] == [
        ("api_call", "succeeded"),
        ("data_access", "succeeded"),
        ("transaction_initiated", "failed"),
    ]
    assert (stored[0].details["model"], stored[0].details["input_tokens"]) == ("m1", 7)
    assert stored[2].details["tool"] == "place_order"
    assert (stored[0].session_id, stored[1].session_id) == ("c1", None)
    assert len({event.details["trace_id"] for event in stored}) == 1
    assert "secret words" not in str([event.details for event in stored])
