"""`python -m bench.nodes.scores_child`: judges stored events as one node does, one after the other.

Reads agents' ids as JSON from standard input; prints how many events they have, how many have the score that
was answered, and the largest difference.
"""

import json
import sys

import django

django.setup()

from agents.models import Agent  # noqa: E402
from certificates.models import Certificate  # noqa: E402
from compliance.core import environments  # noqa: E402
from compliance.core.environments import Environment  # noqa: E402
from events.models import BehaviorEvent  # noqa: E402
from events.risk.context import context_of  # noqa: E402
from events.risk.rebuilding import as_event  # noqa: E402
from events.risk.scoring.habits.state import AgentState  # noqa: E402
from events.risk.scoring.model import fold  # noqa: E402

TOLERANCE = 1e-9


def differences(agent_id: str) -> list[float]:
    """Return how far the score of each event is from that of one node."""
    agent = Agent.objects.get(id=agent_id)
    state, known = AgentState(), context_of(agent, Certificate.objects.get(agent=agent))
    rows = BehaviorEvent.objects.of_agent(agent.id).order_by("id")
    return [abs(fold(state, as_event(row), known).score - row.risk_score) for row in rows]


def main() -> None:
    """Judge the agents of the live environment."""
    with environments.use(Environment.LIVE):
        found = [one for agent_id in json.load(sys.stdin) for one in differences(agent_id)]
    equal = sum(one <= TOLERANCE for one in found)
    json.dump({"events": len(found), "equal": equal, "difference": max(found, default=0.0)}, sys.stdout)


if __name__ == "__main__":
    main()
