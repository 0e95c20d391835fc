"""What an event does: on which object, with which tool, and whether it is irreversible or privileged."""

import math

from events.risk.scoring import weights
from events.risk.scoring.contract import Context
from events.risk.scoring.features.novelty import novelty, rarity
from events.risk.scoring.habits.baseline import Baseline
from events.risk.scoring.habits.comparison import CONTAINER, OBJECT, RESOURCE, Comparison
from events.risk.scoring.reasons import Signal
from events.risk.scoring.weights import SENDING

WAS_READ = 0.5  # share for acting on an object that the agent has only read
ACT_HALF = 40.0  # learned events at which an act counts for half
ACT_TRIALS, MAX_SELDOM = 5.0, 4.0  # events that count for none of a kind of act, and the most nats
ON_SOMETHING_NEW = 1.3  # factor for an act on a new object or with a new destination
READING_COUNTS = 0.5  # share for an unusual tool that only reads
DECLARED = 0.4  # share for an unusual tool of an agent with a declared scope
SURPRISE_SLACK, MAX_SURPRISE = 1.0, 5.0  # nats above the usual that say nothing, and the most that count


def object_signals(seen: Comparison) -> list[Signal]:
    """Weigh a new resource, acting on an object for the first time, and one that lies in a new container."""
    found: list[Signal] = []
    if seen.is_fresh:
        weight = weights.NEW_RESOURCE * rarity(seen.state, RESOURCE) * seen.maturity
        found.append(("new_resource", weight, seen.facts.resource, len(seen.state.resources)))
    if not seen.new_objects or seen.hosts:
        return found
    share = seen.maturity if seen.is_fresh or seen.resource is None else WAS_READ * seen.maturity
    weight = weights.NEW_OBJECT * novelty(seen.state, OBJECT) * share
    found.append(("new_object", weight, seen.facts.resources[0], len(seen.state.objects)))
    if seen.new_containers:
        weight = weights.NEW_CONTAINER * novelty(seen.state, CONTAINER) * seen.maturity
        found.append(("new_container", weight, seen.facts.containers[0], None))
    return found


def act_signals(seen: Comparison) -> list[Signal]:
    """Weigh an irreversible or privileged act by how seldom the agent does one of its kind."""
    if seen.act is None:
        return []
    done = seen.state.acts.get(seen.act) * seen.fading
    seldom = math.log((seen.learned + ACT_TRIALS) / (done * ACT_TRIALS + 1.0))
    if seldom <= 0.0:
        return []
    weight = weights.PRIVILEGED_ACT * min(seldom, MAX_SELDOM) * seen.learned / (seen.learned + ACT_HALF)
    if seen.new or seen.new_objects:
        weight *= ON_SOMETHING_NEW
    return [("privileged_act", weight, (seen.facts.act, seen.facts.tool), None)]


def tool_signals(seen: Comparison, context: Context, baseline: Baseline | None) -> list[Signal]:
    """Weigh the surprise of a tool and of its place in the order; less where the agent has a scope."""
    found: list[Signal] = []
    counts = seen.maturity * (1.0 if seen.aims or seen.event.action_type in SENDING else READING_COUNTS)
    if context.permitted_actions is not None:
        counts *= DECLARED
    excess = seen.unigram - seen.state.tool_surprise - SURPRISE_SLACK
    if excess > 0:
        strange = 1.0
        if baseline is not None:
            strange = baseline.strangeness(baseline.tools, [seen.tool], seen.at, seen.learned)
        weight = weights.UNUSUAL_TOOL * min(excess, MAX_SURPRISE) * counts * strange
        found.append(("unusual_tool", weight, seen.facts.tool, None))
    excess = seen.bigram - seen.state.bigram_surprise - SURPRISE_SLACK
    if excess > 0:
        weight = weights.UNUSUAL_SEQUENCE * min(excess, MAX_SURPRISE) * counts
        found.append(("unusual_sequence", weight, seen.facts.tool, None))
    return found
