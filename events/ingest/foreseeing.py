"""Score events before they happen: nothing of them is stored, learned or counted."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from events.ingest.ingestion import drafts_of
from events.ingest.standing import AgentStanding
from events.risk import baselines, snapshots
from events.risk.scoring.contract import Event, RiskVerdict
from events.risk.scoring.model import fold


def verdicts(asked: Sequence[tuple[AgentStanding, Event]], *, now: datetime) -> list[RiskVerdict]:
    """The verdict that each event would get as the next one of its agent, which may report; in order."""
    agents = {agent.id: agent for agent, _ in asked}
    states = {agent_id: draft.state for agent_id, draft in drafts_of(agents.values(), {}, now=now).items()}
    for agent_id in agents.keys() - states.keys():
        has_limits = agents[agent_id].has_limits
        states[agent_id] = snapshots.rebuild(agent_id=agent_id, has_limits=has_limits, now=now)
    lent = baselines.of_tenants({agent.profile.tenant_id for agent in agents.values()}, now=now)
    found, left = [], Counter(agent.id for agent, _ in asked)
    for agent, event in asked:
        left[agent.id] -= 1
        # Folding an event in changes the state.
        state = states[agent.id].changeable() if left[agent.id] else states[agent.id]
        found.append(fold(state, event, agent.profile.context, lent.get(agent.profile.tenant_id)))
    return found
