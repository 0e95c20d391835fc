"""Scorer states as the next event, and Redis, have them."""

from agents.models import Agent
from compliance.core.clock import now
from compliance.stores import redis
from events.risk import rebuilding, state_cache
from events.risk.scoring.habits.state import AgentState, encode_state


def recalled(agent: Agent) -> AgentState:
    """What the next event will start from."""
    held = state_cache.load([str(agent.id)])[str(agent.id)].state
    has_limits = agent.financial_scope is not None
    return held or rebuilding.rebuild(agent_id=str(agent.id), has_limits=has_limits, now=now())


def habits(state: AgentState) -> bytes:
    """All of a state but how it came about."""
    copy = state.changeable()
    copy.taken_in = b""
    return encode_state(copy)


def stored(agent: Agent) -> bytes | None:
    return redis.client().get(redis.key("risk", agent.id))  # type: ignore[return-value]
