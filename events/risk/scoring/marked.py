"""The places of confirmed attacks: which ones an event marks, and what meeting one again weighs."""

from collections.abc import Callable, Iterable, Iterator
from math import exp2, log

from events.risk.scoring.comparison import Comparison
from events.risk.scoring.contract import PRIOR_LOGITS, Context, Event, Marks
from events.risk.scoring.details import ActionFacts, read
from events.risk.scoring.features import is_inside
from events.risk.scoring.places import QUOTES, is_public
from events.risk.scoring.reasons import WEIGHTS, Signal, declare, itself
from events.risk.scoring.state import DAY, KIND, AgentState
from events.risk.scoring.tables import digest

MOST_PLACES = 16  # most places that one event can mark
MORE_THAN_ONCE = 1.5  # faded sightings from which a place is known apart from the event, if that was learned
HALF_LIFE = 30 * DAY  # seconds after which a confirmation counts half
OFTEN_NEW = 1 / 3  # share of new destinations of an agent to which a new one says nothing
ENOUGH_TRIALS = 15.0  # destinations at which an agent's share of new ones counts for half

IsCommon = Callable[[str], bool]


def places_of(
    event: Event, state: AgentState, context: Context, is_common: IsCommon, *, was_learned: bool
) -> tuple[str, ...]:
    """Return the places to mark when `event` is part of an attack; `was_learned`: it scored low.

    Those that the agent didn't know from other events; if it knew all, its accounts and addresses without
    hosts, which others share. Never what `is_common` says the tenant's other agents know, the agent's own
    domain, hosts of mail addresses, public services or paths.
    """
    facts = read(event.details)
    fading = state.fading(event.received_at)
    hosts = set(_own_hosts(facts))
    named = dict.fromkeys((*facts.targets, *_own_hosts(facts)))
    found = [name for name in named if _is_place(name, context)]
    enough = MORE_THAN_ONCE if was_learned else 0.0

    def is_known(name: str) -> bool:
        tables = (state.destinations, state.hosts) if name in hosts else (state.destinations,)
        return any(table.get(digest(name)) * fading > enough for table in tables)

    new = [name for name in found if not is_known(name)]
    told = new or [name for name in found if name not in hosts]
    return tuple([name for name in told if not is_common(name)][:MOST_PLACES])


def weighed(said: Iterable[tuple[str, float, bool]]) -> Marks:
    """Sum up what verdicts said of places: name, epoch seconds, for or against a mark; in order of time.

    A confirmation adds one, a dismissal takes one away, and both fade.
    """
    sums: dict[str, tuple[float, float]] = {}
    latest = 0.0
    for name, at, is_confirmed in said:
        before, since = sums.get(name, (0.0, at))
        sums[name] = max(before * _faded(at - since) + (1 if is_confirmed else -1), 0.0), at
        latest = at
    return Marks(latest, {name: count * _faded(latest - at) for name, (count, at) in sums.items() if count})


def _faded(age: float) -> float:
    return exp2(-max(age, 0.0) / HALF_LIFE)


def marked_signals(seen: Comparison, marked: Marks) -> list[Signal]:
    """Return a signal for the marked place that weighs most, if the event names one."""
    met = [(mark, name) for mark, name in _within(seen.facts) if mark in marked.confirmed]
    if not met:
        return []
    faded = _faded(seen.at - marked.at)
    weight, told = max((_weight(seen, name, marked.confirmed[mark] * faded), name) for mark, name in met)
    return [("confirmed_destination", weight, told, None)]


def may_be_marked(details: object) -> list[str]:
    """Return all that a mark may be of: the targets and hosts that details name, and the hosts' domains."""
    return [mark for mark, _ in _within(read(details))]


def _within(facts: ActionFacts) -> Iterator[tuple[str, str]]:
    """Yield each place and, of hosts, each domain that it is within, beside the place."""
    for target in facts.targets:
        yield target, target
    for host in facts.hosts:
        for domain in _upwards(host):
            yield domain, host


# The score of an event with nothing but a fresh mark at a new place; what a mark weighs where that says less;
# what a second confirmation adds
declare(
    "confirmed_destination",
    "Goes where an attack went that an officer confirmed",
    itself,
    "no place that a confirmed attack went to",
    MARKED_ALONE=0.4,
    MARKED_MORE=1.0,
    MARKED_AGAIN=1.5,
)


def _weight(seen: Comparison, name: str, confirmed: float) -> float:
    """Return what so many confirmations of a place weigh; any beyond the first add one more at most.

    Where the agent doesn't know the place, a fresh mark makes an event medium alone, unless the agent has
    habits and goes somewhere new often: then it takes something else, as it does at a place that it knows.
    """
    worth, alone = WEIGHTS["MARKED_MORE"], WEIGHTS["MARKED_ALONE"]
    if not _knows(seen, digest(name)):
        most = max(log(alone / (1 - alone)) - PRIOR_LOGITS[seen.action_type], worth)
        worth += (most - worth) * (1.0 - _restlessness(seen))
    return worth * min(confirmed, 1.0) + WEIGHTS["MARKED_AGAIN"] * min(max(confirmed - 1.0, 0.0), 1.0)


def _knows(seen: Comparison, place: bytes) -> bool:
    state = seen.state
    return state.destinations.knows(place, seen.fading) or state.hosts.knows(place, seen.fading)


def _restlessness(seen: Comparison) -> float:
    """Return how surely the agent is one that often goes somewhere new with such events, 0 to 1."""
    kind = KIND.get(seen.action_type)
    if kind is None:
        return 0.0
    trials = seen.state.trials_of(kind)
    return min(seen.state.rate_of(kind) / OFTEN_NEW, 1.0) * trials / (trials + ENOUGH_TRIALS)


def _upwards(host: str) -> Iterator[str]:
    """Yield a host and the domains that it is within, but no top-level one."""
    yield host
    while "." in (host := host.partition(".")[2]):
        yield host


def _own_hosts(facts: ActionFacts) -> list[str]:
    mail = {target.rpartition("@")[2].strip(QUOTES) for target in facts.targets if "@" in target}
    return [host for host in facts.hosts if host not in mail]


def _is_place(name: str, context: Context) -> bool:
    is_home = is_inside(name.rpartition("@")[2], context.home_domain)
    # "3 more" stands for the rest of a long list
    hides = name.endswith(" more") and name.partition(" ")[0].isdigit()
    return not (is_home or hides or name.startswith("/") or is_public(name))
