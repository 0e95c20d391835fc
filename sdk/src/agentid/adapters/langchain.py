"""Reports what LangChain and LangGraph run: tools, retrievers and models (extra `langchain`)."""

import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Self
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from agentid.reporting import ActionType, Reporter

MAX_RUNNING = 10_000
SESSION_NAMES = ("session_id", "thread_id")  # LangGraph names its conversations `thread_id`


@dataclass(frozen=True)
class _Run:
    action_type: ActionType
    details: Mapping[str, Any]
    session_id: str | None
    began: float = field(default_factory=time.monotonic)
    occurred_at: datetime = field(default_factory=lambda: datetime.now(UTC))


class ReportingHandler(BaseCallbackHandler):
    """Reports each run when it ends, with outcome and duration; inputs and outputs never.

    `tools` names the action type of each tool, `api_call` where it names none.
    """

    run_inline = True  # in the order of the runs; nothing here waits

    def __init__(self, reporter: Reporter, *, tools: Mapping[str, ActionType] | None = None) -> None:
        self._reporter, self._tools = reporter, tools or {}
        self._running: OrderedDict[UUID, _Run] = OrderedDict()
        self._lock = Lock()

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: UUID, **kwargs: Any) -> None:
        name = _name(serialized, kwargs)
        self._begin(run_id, self._tools.get(name, "api_call"), {"tool": name}, kwargs)

    def on_retriever_start(self, serialized: Any, query: str, *, run_id: UUID, **kwargs: Any) -> None:
        self._begin(run_id, "data_access", {"retriever": _name(serialized, kwargs)}, kwargs)

    def on_llm_start(self, serialized: Any, prompts: Any, *, run_id: UUID, **kwargs: Any) -> None:
        model = (kwargs.get("metadata") or {}).get("ls_model_name") or _name(serialized, kwargs)
        self._begin(run_id, "api_call", {"model": model}, kwargs)

    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self.on_llm_start(serialized, messages, run_id=run_id, **kwargs)

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self._end(run_id)

    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self._end(run_id)

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self._end(run_id, documents=len(documents))

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._end(run_id, error=error)

    on_retriever_error = on_llm_error = on_tool_error

    def _begin(
        self, run_id: UUID, action_type: ActionType, details: Mapping[str, Any], given: Mapping[str, Any]
    ) -> None:
        known = given.get("metadata") or {}
        session = next((str(known[name]) for name in SESSION_NAMES if name in known), None)
        with self._lock:
            self._running[run_id] = _Run(action_type, details, session)
            if len(self._running) > MAX_RUNNING:
                self._running.popitem(last=False)

    def _end(self, run_id: UUID, *, error: BaseException | None = None, **more: Any) -> None:
        with self._lock:
            run = self._running.pop(run_id, None)
        if run is None:
            return
        told = {"outcome": "succeeded" if error is None else "failed"}
        told |= {} if error is None else {"error": type(error).__name__}
        duration = round((time.monotonic() - run.began) * 1000, 3)
        self._reporter.report(
            run.action_type,
            {**run.details, **told, "duration_ms": duration, **more},
            occurred_at=run.occurred_at,
            session_id=run.session_id,
        )


def _name(serialized: Mapping[str, Any] | None, given: Mapping[str, Any]) -> str:
    return str(given.get("name") or (serialized or {}).get("name") or "unnamed")
