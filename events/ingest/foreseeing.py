"""Score events before they happen: nothing of them is stored, learned or counted."""

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
    seen = {agent_id: draft.seen for agent_id, draft in drafts_of(agents.values(), {}, now=now).items()}
    lent = baselines.of_tenants({agent.profile.tenant_id for agent in agents.values()}, now=now)
    found = []
    for agent, event in asked:
        # Unpacked anew for each event: folding one in changes the state.
        state = seen[agent.id].state if agent.id in seen else None
        if state is None:
            state = snapshots.rebuild(agent_id=agent.id, has_limits=agent.has_limits, now=now)
        profile = agent.profile
        found.append(fold(state, event, profile.context, lent.get(profile.tenant_id)))
    return found
