"""Where an event goes: places that the agent does not know."""

import math

from events.risk.scoring import weights
from events.risk.scoring.contract import Context
from events.risk.scoring.features.novelty import novelty
from events.risk.scoring.habits.baseline import Baseline
from events.risk.scoring.habits.comparison import READ_BEFORE, Comparison
from events.risk.scoring.habits.state import AIM
from events.risk.scoring.reasons import Signal

WITHIN_HOME = 0.5  # share inside the agent's own domain
MUTATION_CARRIES = 0.5  # share for a mutation with a target (an invitation), which carries out less
FETCH_CARRIES = 0.5  # share for a call that fetches: browsing goes to new places by its nature
MOST = 4.0  # log-odds that a new place can reach: well into medium, high only beside something else
IN_COMPANY = 0.9  # share for a new target beside a known one, who sees it


def destination_signals(seen: Comparison, context: Context, baseline: Baseline | None) -> list[Signal]:
    """Weigh a new place, going there after reading, and a new place outside the agent's own domain."""
    if seen.destinations and not seen.new:
        return []
    told = seen.new[0] if seen.new else None
    found: list[Signal] = [("new_destination", weights.NEW_DESTINATION, told, len(seen.state.destinations))]
    if seen.reads > READ_BEFORE:
        found.append(("read_then_send", weights.READ_THEN_SEND * min(seen.reads, 1.0), told, None))
    if context.home_domain is not None:
        outside = [host for host in seen.facts.hosts if not is_inside(host, context.home_domain)]
        if outside or not seen.facts.targets:
            told = outside[0] if outside else None
            found.append(("external_host", weights.EXTERNAL_HOST, told, context.home_domain))
    return _weighed(found, _strangeness(seen, context, baseline))


def _weighed(found: list[Signal], strange: float) -> list[Signal]:
    """Return the signals for a place that is so strange; together they approach MOST and don't pass it.

    Where a policy sets all their weights to zero, they weigh nothing.
    """
    total = 0.0
    for _, weight, _, _ in found:
        total += weight
    if not total:
        return found
    share = MOST * (1.0 - math.exp(-total * strange / MOST)) / total
    return [(name, weight * share, told, expected) for name, weight, told, expected in found]


def is_inside(host: str, home: str | None) -> bool:
    return home is not None and (host == home or host.endswith("." + home))


def _are_inside(targets: list[str], home: str | None) -> bool:
    return all(is_inside(target.rpartition("@")[2], home) for target in targets)


def _strangeness(seen: Comparison, context: Context, baseline: Baseline | None) -> float:
    """Return how strange the event's new places are, 0 to 1; a place left out is as strange as can be."""
    strange = novelty(seen.state, AIM[seen.event.action_type])
    if baseline is not None:
        strange *= baseline.strangeness(baseline.destinations, seen.new_names, seen.at, seen.learned)
    if seen.new and _are_inside(seen.new, context.home_domain):
        strange *= WITHIN_HOME
    if seen.event.action_type == "data_mutation":
        strange *= MUTATION_CARRIES
    elif seen.event.action_type == "api_call" and seen.facts.brings_text:
        strange *= FETCH_CARRIES
    return strange * IN_COMPANY if 0 < len(seen.new) < len(seen.destinations) else strange
