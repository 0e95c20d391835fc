"""Reports the spans of generative AI that OpenTelemetry traces (extra `opentelemetry`).

Read are the attributes `gen_ai.*` of the semantic conventions; prompts and answers never.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import StatusCode

from agentid.reporting import ActionType, Reporter

TOOL = "execute_tool"
ACTIONS: Mapping[str, ActionType] = {
    "chat": "api_call",
    "generate_content": "api_call",
    "text_completion": "api_call",
    "embeddings": "api_call",
    "retrieval": "data_access",
    TOOL: "api_call",
}
DETAILS = {
    "gen_ai.tool.name": "tool",
    "gen_ai.request.model": "model",
    "gen_ai.provider.name": "provider",
    "gen_ai.data_source.id": "data_source",
    "gen_ai.usage.input_tokens": "input_tokens",
    "gen_ai.usage.output_tokens": "output_tokens",
    "error.type": "error",
}


class ReportingProcessor(SpanProcessor):
    """Reports each span of a model, a tool or a retrieval when it ends; others are left out.

    `tools` names the action type of each tool, `api_call` where it names none.
    """

    def __init__(self, reporter: Reporter, *, tools: Mapping[str, ActionType] | None = None) -> None:
        self._reporter, self._tools = reporter, tools or {}

    def on_end(self, span: ReadableSpan) -> None:
        attributes = span.attributes or {}
        operation = str(attributes.get("gen_ai.operation.name"))
        action_type = ACTIONS.get(operation)
        if action_type is None:
            return
        if operation == TOOL:
            action_type = self._tools.get(str(attributes.get("gen_ai.tool.name")), action_type)
        conversation, began = attributes.get("gen_ai.conversation.id"), span.start_time
        self._reporter.report(
            action_type,
            details_of(span),
            occurred_at=None if began is None else datetime.fromtimestamp(began / 1e9, UTC),
            session_id=str(conversation) if conversation is not None else None,
        )

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._reporter.flush(timeout_millis / 1000)


def details_of(span: ReadableSpan) -> dict[str, Any]:
    """What is reported of a span."""
    attributes = span.attributes or {}
    found: dict[str, Any] = {short: attributes[name] for name, short in DETAILS.items() if name in attributes}
    failed = span.status.status_code is StatusCode.ERROR
    found["outcome"] = "failed" if failed else "succeeded"
    if span.start_time is not None and span.end_time is not None:
        found["duration_ms"] = round((span.end_time - span.start_time) / 1e6, 3)
    if span.context is not None:
        found["trace_id"] = format(span.context.trace_id, "032x")
    return found
