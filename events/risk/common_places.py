"""What a tenant's other agents know, so that confirming an attack on one agent doesn't mark it for all."""

from collections.abc import Iterator
from datetime import datetime

from agents.models import Agent
from events.risk import baselines, snapshots, state_cache
from events.risk.scoring.habits.baseline import Baseline
from events.risk.scoring.habits.state import AgentState
from events.risk.scoring.habits.tables import digest
from events.risk.scoring.marked import IsCommon

MOST_AGENTS = 1_000  # most other agents whose states are read: those registered last


def known_beside(agent: Agent, *, now: datetime) -> IsCommon:
    """Return a test of whether `agent`'s tenant knows a place: by its baseline, or by another agent's habits.

    A baseline knows what two agents have named, so a missed attack on one doesn't vouch for itself.
    """
    at = now.timestamp()
    others = list(_states_beside(agent))
    baseline = baselines.of_tenants([agent.tenant_id], now=now).get(agent.tenant_id)

    def is_common(name: str) -> bool:
        place = digest(name)
        return any(_knows(state, place, at) for state in others) or (
            baseline is not None and _pooled(baseline, place, at)
        )

    return is_common


def _knows(state: AgentState, place: bytes, at: float) -> bool:
    fading = state.fading(at)
    return state.destinations.knows(place, fading) or state.hosts.knows(place, fading)


def _pooled(baseline: Baseline, place: bytes, at: float) -> bool:
    fading = baseline.fading(at)
    return baseline.destinations.knows(place, fading) or baseline.hosts.knows(place, fading)


def _states_beside(agent: Agent) -> Iterator[AgentState]:
    others = Agent.objects.for_tenant(agent.tenant_id).exclude(id=agent.id).order_by("-id")
    ids = [str(agent_id) for agent_id in others.values_list("id", flat=True)[:MOST_AGENTS]]
    if not ids:
        return
    cached = {agent_id: one.state for agent_id, one in state_cache.load(ids).items()}
    lost = [agent_id for agent_id, state in cached.items() if state is None]
    kept = {agent_id: one.state for agent_id, one in snapshots.held(lost).items()}
    yield from (state for state in (cached | kept).values() if state is not None)
