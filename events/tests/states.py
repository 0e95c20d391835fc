"""Scorer states as the next event, and Redis, have them."""

import math

from agents.models import Agent
from compliance.core.circuit_breaker import CircuitBreaker
from compliance.core.clock import now
from compliance.stores import redis
from events.risk import snapshots, state_cache
from events.risk.scoring.state import AgentState, encode_state


def recalled(agent: Agent) -> AgentState:
    """What the next event will start from."""
    held = state_cache.load([str(agent.id)])[str(agent.id)].state
    has_limits = agent.financial_scope is not None
    return held or snapshots.rebuild(agent_id=str(agent.id), has_limits=has_limits, now=now())


def habits(state: AgentState) -> bytes:
    """All of a state but how it came about."""
    copy = state.changeable()
    copy.taken_in = b""
    return encode_state(copy)


def stored(agent: Agent) -> bytes | None:
    return redis.client().get(redis.key("risk", agent.id))  # type: ignore[return-value]


def lose(agent: Agent) -> None:
    """Have Redis lose the agent's state."""
    redis.client().delete(redis.key("risk", agent.id))


def plant(agent: Agent, **numbers: float) -> None:
    """Have Redis hold the agent's state with these numbers, under the tag it has."""
    held = state_cache.load([str(agent.id)])[str(agent.id)]
    state = held.state or AgentState()
    for name, number in numbers.items():
        setattr(state, name, number)
    redis.client().set(redis.key("risk", agent.id), held.tag + encode_state(state))


IMPOSSIBLE_NUMBERS = [{"learned": math.nan}, {"usual_amount": math.inf}, {"learned": -15.0, "landmark": 1e12}]
"""Numbers of a state: two are unreadable, the last has the scorer divide by zero."""


def tripped_circuit() -> CircuitBreaker:
    """A circuit that lets nothing reach Redis for a minute."""
    circuit = redis.make_circuit()
    circuit.failed(circuit.admit(), pause=60)
    return circuit
