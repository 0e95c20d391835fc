"""Scorer states as the next event, and Redis, have them."""

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


def tripped_circuit() -> CircuitBreaker:
    """A circuit that lets nothing reach Redis for a minute."""
    circuit = redis.make_circuit()
    circuit.failed(circuit.admit(), pause=60)
    return circuit
