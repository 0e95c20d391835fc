"""OpenTelemetry's own SDK and exporter, unchanged, into the running service."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import tool
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind

from agents.models import Agent
from tests.conftest import Reported
from tests.served import Service

OPERATION, TOOL, ARGUMENTS = "gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.tool.call.arguments"
MakeProvider = Callable[[Agent], TracerProvider]


@pytest.fixture
def make_provider(
    service: Service, reported: Reported, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MakeProvider]:
    """Make tracer providers that are configured by nothing but the environment."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{service.address}/v1/otlp/v1/traces")
    header = f"Authorization=Bearer%20{reported.api_key}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", header)
    made: list[TracerProvider] = []

    def make(agent: Agent) -> TracerProvider:
        provider = TracerProvider(resource=Resource.create({"agentid.agent.id": str(agent.id)}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        made.append(provider)
        return provider

    yield make
    for provider in made:
        provider.shutdown()


@tool
def search(city: str) -> str:
    """Search for a city."""
    return "secret words"


def play(provider: TracerProvider, count: int = 10) -> None:
    """A run of an agent that calls so many tools, each of which calls a server."""
    tracer = provider.get_tracer("test")
    run = {OPERATION: "invoke_agent", "gen_ai.conversation.id": "c1", "gen_ai.agent.name": "trader"}
    with tracer.start_as_current_span("invoke_agent trader", attributes=run):
        for number in range(count):
            said = {
                OPERATION: "execute_tool",
                TOOL: f"tool_{number}",
                ARGUMENTS: f'{{"path": "/docs/{number}"}}',
            }
            at = {"server.address": f"host{number}.example"}
            with tracer.start_as_current_span("execute_tool", attributes={**said, **at}):
                pass
            with tracer.start_as_current_span("chat", attributes={OPERATION: "chat"}):
                pass


def test_an_agent_with_ten_tools_has_ten_events(
    service: Service, reported: Reported, make_provider: MakeProvider
) -> None:
    provider = make_provider(reported.agent)

    play(provider)
    assert provider.force_flush(30_000)

    stored = reported.events()
    assert [event.details["tool"] for event in stored] == [f"tool_{number}" for number in range(10)]
    for number, event in enumerate(stored):
        assert event.details["arguments"] == {"path": f"/docs/{number}"}
        assert event.details["host"] == f"host{number}.example"
        assert event.session_id == "c1"


def test_a_request_exported_before_its_agents_span_ends_has_an_event(
    service: Service, reported: Reported, make_provider: MakeProvider
) -> None:
    provider = make_provider(reported.agent)
    tracer = provider.get_tracer("test")
    said = {"http.request.method": "GET", "url.full": "https://a.example/x"}

    with tracer.start_as_current_span("invoke_agent trader", attributes={OPERATION: "invoke_agent"}):
        with tracer.start_as_current_span("GET", kind=SpanKind.CLIENT, attributes=said):
            pass
        assert provider.force_flush(30_000)

        assert [event.details["url"] for event in reported.events()] == ["https://a.example/x"]


def instrumentor_of(library: str) -> Any:
    if library == "OpenInference":
        return pytest.importorskip("openinference.instrumentation.langchain").LangChainInstrumentor()
    return pytest.importorskip("opentelemetry.instrumentation.langchain").LangchainInstrumentor()


@pytest.mark.parametrize("library", ["OpenInference", "OpenLLMetry"])
def test_tools_of_langchain_have_events(
    service: Service, reported: Reported, make_provider: MakeProvider, library: str
) -> None:
    instrumentor, provider = instrumentor_of(library), make_provider(reported.agent)
    calls = [{"name": "search", "args": {"city": f"c{number}"}, "id": str(number)} for number in range(10)]
    model = FakeMessagesListChatModel(responses=[AIMessage(content="secret words", tool_calls=calls)])

    def run(question: str, config: RunnableConfig) -> str:
        answer = model.invoke(question, config)
        assert isinstance(answer, AIMessage)
        for call in answer.tool_calls:
            search.invoke(call, config)
        return "secret words"

    instrumentor.instrument(tracer_provider=provider)
    try:
        RunnableLambda(run).invoke("secret words", {"metadata": {"thread_id": "t1"}, "run_name": "agent"})
    finally:
        instrumentor.uninstrument()
    assert provider.force_flush(30_000)

    stored = reported.events()
    assert [event.details["tool"] for event in stored] == ["search"] * 10
    for number, event in enumerate(stored):
        assert f"c{number}" in str(event.details["arguments"])
        assert (event.session_id, event.details["outcome"]) == ("t1", "succeeded")
    assert "secret words" not in str([event.details for event in stored])
