"""What agents do, and how it scores."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from agentid.client import answers
from agentid.client.operation import Group, S, listing, operation
from agentid.client.records import Page
from agentid.client.request import Request, as_json, given, path
from agentid.client.results.events import BatchResult, BehaviorEvent, EventReview, ExplainedEvent

ROUTED_BY = "X-Agent-Id"
"""The header by which a balancer may send all events of an agent to one node."""


class Events(Group[S]):
    """What agents do, and how it scores."""

    @listing("listEvents")
    def list(
        self,
        *,
        action_type: str | None = None,
        agent_id: str | None = None,
        band: str | None = None,
        before: datetime | str | None = None,
        limit: int | None = None,
    ) -> Request[Page[BehaviorEvent]]:
        """List events, newest first."""
        return Request(
            "GET",
            "/v1/events",
            answers.page(BehaviorEvent),
            query=given(action_type=action_type, agent_id=agent_id, band=band, before=before, limit=limit),
        )

    @operation("recordEvent")
    def record(
        self,
        *,
        agent_id: str,
        action_type: str,
        details: Mapping[str, Any] | None = None,
        occurred_at: datetime | None = None,
        session_id: str | None = None,
        chain_id: str | None = None,
        payload: Mapping[str, Any] | None = None,
        idempotency_key: str = "",
    ) -> Request[BehaviorEvent]:
        """Record an agent's action and score its risk."""
        return Request(
            "POST",
            "/v1/events",
            answers.data(BehaviorEvent),
            **as_json(
                given(
                    agent_id=agent_id,
                    action_type=action_type,
                    details=details,
                    occurred_at=occurred_at,
                    session_id=session_id,
                    chain_id=chain_id,
                    payload=payload,
                ),
                headers=_routing(agent_id),
            ),
            key=idempotency_key,
        )

    @operation("getEvent")
    def get(self, event_id: str) -> Request[ExplainedEvent]:
        """Fetch an event and why it scored as it did."""
        return Request("GET", path("/v1/events/{}", event_id), answers.data(ExplainedEvent))

    @operation("reviewEvent")
    def review(
        self, event_id: str, *, verdict: str, note: str | None = None, idempotency_key: str = ""
    ) -> Request[EventReview]:
        """Say what an event was: part of an attack, or ordinary after all."""
        return Request(
            "POST",
            path("/v1/events/{}/review", event_id),
            answers.data(EventReview),
            **as_json(given(verdict=verdict, note=note)),
            key=idempotency_key,
        )

    @operation("recordEvents")
    def record_batch(
        self, events: Sequence[Mapping[str, Any]], *, idempotency_key: str = ""
    ) -> Request[tuple[BatchResult, ...]]:
        """Record up to 1,000 actions at once."""
        return Request(
            "POST",
            "/v1/events/batch",
            answers.listed(BatchResult),
            **as_json(given(events=events)),
            key=idempotency_key,
        )


def _routing(agent_id: str) -> dict[str, str]:
    """The header for a balancer, unless the service refuses such an id anyway."""
    return {ROUTED_BY: agent_id} if agent_id.isascii() and agent_id.isprintable() else {}
