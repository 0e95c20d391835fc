"""How events change an agent's state: as they are scored, from storage, or by an officer's review."""

import math
from collections.abc import Iterable

from events.risk.scoring.comparison import (
    AMOUNT,
    CONTAINER,
    EXPECTED,
    HOST,
    OBJECT,
    RESOURCE,
    SESSION_GAP,
    Comparison,
)
from events.risk.scoring.contract import FAILURES, SENDING, TRANSACTIONS, Event
from events.risk.scoring.details import read
from events.risk.scoring.packed import NAME, NUMBER
from events.risk.scoring.state import (
    AIM,
    EVENT,
    FADE,
    MAX_AMOUNTS,
    MEAN_RATE,
    RESCALE_AFTER,
    SURPRISES,
    WIDTH,
    AgentState,
)
from events.risk.scoring.tables import FORGOTTEN, OMITTED, act_digest, digest, meet, note_paid, take_uncounted
from tenancy.alarm_budgets import ALARM_BUDGET

LONG_RATE = 0.002  # share of a new value in the usual amount, which lags behind a slow climb
MAX_DESTINATIONS, MAX_RESOURCES, MAX_HOSTS, MAX_WAITING = 200, 32, 48, 200
MAX_TOOLS, MAX_BIGRAMS, MAX_OBJECTS, MAX_ACTS, MAX_PAID = 40, 40, 48, 8, 128
MOST_READS, MOST_DAYS = 3.0, 20.0  # where the faded count of reads and the count of active days end
# Of a day's new places, peak of new resources, dollars: the share of the last day in what is usual
NEW_RATE, PEAK_RATE, OUTFLOW_RATE = 0.1, 0.3, 0.2
# And by how much a day can exceed what is usual, so that one day alone makes nothing usual
MOST_WAITED = 3  # places that waited whose novelty a day counts, so that strangers stay strange
MOST_NEW = 2.0  # times the usual, and one more
MOST_PEAK, MOST_OUTFLOW = 2.0, 1.0  # nats
MOST_TAKEN_IN = 32
PSEUDO_EVENTS = 60.0  # events of its tenant's that count beside an agent's own; of all agents', beside those
CREDIT_RATE = 0.5  # share of the budget by which each event raises an agent's credit
SPENT = 0.8  # share of its credit that an alarm takes
HALF_KNOWN = 40.0  # counted events (faded) at which an agent is half known
NEW = 8.0  # events that the credit of an agent without a past counts as
STRANGE_RATE = 0.2  # share of an event in how strange the last events were


def learn(seen: Comparison, band: str, budget: float = ALARM_BUDGET, trusted: bool = False) -> None:
    """Fold the event into its agent's state: its last minutes always, its habits only if it scored low.

    The new places and the privileged act of a medium event are only met: met on several days, they become
    known, and after three days places count in the agent's rate of novelty, unless an officer confirms an
    attack. What its payees got is noted. A `trusted` event's places are known at once.
    Its surprise counts (`_calibrate`) by the agent's alarm `budget`.
    """
    if not seen.state.landmark or (not trusted and seen.state.landmark - seen.at > SESSION_GAP):
        seen.state.landmark = seen.at  # of the first event, or of a clock that was set back
    if seen.begins_day:
        _begin_day(seen)
    _last_minutes(seen)
    if band != "high" and seen.outflow and seen.facts.amount is not None:
        root = math.sqrt(seen.facts.amount)
        for payee in seen.destinations:
            note_paid(seen.state.paid, payee, seen.day, root, MAX_PAID)
    if band == "low":
        _habits(seen, trusted)
    elif band == "medium":
        if seen.new_names or seen.ending:
            _meet(seen)
        if seen.act is not None and meet(seen.state.waiting, seen.act, seen.day, EVENT, MAX_WAITING):
            seen.state.acts.add(seen.act, 1.0 / seen.fading, MAX_ACTS)
    if seen.surprise >= 0.0:
        _calibrate(seen, band, budget)


def _calibrate(seen: Comparison, band: str, budget: float) -> None:
    """Count the event's surprise in full if it is low; if medium, by the credit that it takes.

    The less credit is left, the rarer is the next alarm (`model.limit_of`). A grown agent's alarms hardly
    count, so they make no alarm usual, and high ones not at all; a new agent's do, while nobody knows what is
    usual for it. Low events count beneath the alarms, where they can't raise what it takes to be one.
    """
    state = seen.state
    counted = state.surprises_from(0) * state.fading(seen.at)
    state.strange = seen.strange + (min(seen.excess, 1.0) - seen.strange) * STRANGE_RATE
    state.credit = min(state.credit + budget * CREDIT_RATE, 1.0)
    weight = 0.0
    if band == "low":
        weight = 1.0
    elif band == "medium":
        unknown = share_unknown(counted)
        weight = min(1.0, state.credit * SPENT * NEW * unknown * unknown)
        state.credit *= 1.0 - SPENT
    if weight:
        place = min(int(seen.surprise / WIDTH), SURPRISES - 1)
        state.count_surprise(place, weight * math.exp((seen.at - state.landmark) / FADE))


def share_unknown(counted: float) -> float:
    """Return how little is known of an agent with so many counted events: 1 without any, nearing 0."""
    return HALF_KNOWN / (counted + HALF_KNOWN)


def unlearn(state: AgentState, event: Event, places: Iterable[str], *, was_learned: bool) -> None:
    """Take an attack's places and its act off probation, and take back what was learned of them if it was.

    What its payees got is forgotten. What the agent knows from other events stays.
    """
    facts = read(event.details)
    taught = math.exp((event.received_at - state.landmark) / FADE) if was_learned and state.learned else 0.0
    for payee in map(digest, facts.targets):
        state.paid.remove(payee)
    for name in (*map(digest, places), *([act_digest(facts.act)] if facts.act else ())):
        state.waiting.remove(name)
        for table in (state.destinations, state.hosts, state.acts):
            if taught and (weight := table.get(name)):
                table.add(name, -min(weight, taught), 1)
    if taught:
        state.uncount_surprise(taught)


def has_taken_in(state: AgentState, identity: bytes) -> bool:
    """Return whether the state holds this event or review already."""
    held = state.taken_in
    return identity[-NAME:] in {held[at : at + NAME] for at in range(0, len(held), NAME)}


def note_taken_in(state: AgentState, identities: Iterable[bytes]) -> None:
    """Note that the state holds these events or reviews: the last few, by the random ends of their ids."""
    held = state.taken_in + b"".join(identity[-NAME:] for identity in identities)
    state.taken_in = held[-MOST_TAKEN_IN * NAME :]


def _begin_day(seen: Comparison) -> None:
    """Take the agent's last day into what is usual for it, and count what has waited for long enough."""
    state = seen.state
    for kind in take_uncounted(state.waiting, seen.day)[:MOST_WAITED]:
        if kind != EVENT:  # an act, which has no rate
            state.count_trial(kind, True)
    if state.last_at:
        state.days = min(state.days + 1.0, MOST_DAYS)
        new = min(state.day_new, state.usual_new * MOST_NEW + 1.0) if state.days > 1.0 else state.day_new
        state.usual_new += (new - state.usual_new) * max(1.0 / state.days, NEW_RATE)
        peak = math.log1p(state.fresh_peak)
        if state.days > 1.0:
            peak = min(peak, state.usual_fresh + MOST_PEAK)
        state.usual_fresh += (peak - state.usual_fresh) * max(1.0 / state.days, PEAK_RATE)
    state.fresh_peak = seen.fresh
    state.day_new = 0.0


def _last_minutes(seen: Comparison) -> None:
    """Count what just happened; a transaction counts toward its day even if it was over a limit."""
    state, action_type, facts = seen.state, seen.action_type, seen.facts
    state.count_trial(EVENT, False)
    # Events overtake each other by moments, but a clock that was set back is followed
    is_near = seen.at > state.last_at - SESSION_GAP
    state.last_at = max(state.last_at, seen.at) if is_near else seen.at
    state.burst = seen.burst + 1.0
    state.reads = min(seen.reads + (action_type == "data_access" or facts.brings_text), MOST_READS)
    state.failures = seen.failures + (action_type in FAILURES or facts.refused)
    state.fresh = seen.fresh + seen.is_fresh
    state.fresh_peak = max(state.fresh_peak, state.fresh)
    state.day_new = seen.day_new
    state.hour_new = seen.hour_new
    state.anomalies = seen.anomalies + (action_type == "transaction_anomaly")
    if seen.has_tool:
        state.last_tool = seen.tool
    if action_type in TRANSACTIONS:
        if state.day != seen.day and state.day_usd:  # the last such day counts in the usual outflow
            out, usual = math.log1p(state.day_usd), state.usual_outflow
            nearer = usual + (min(out, usual + MOST_OUTFLOW) - usual) * OUTFLOW_RATE
            state.usual_outflow = nearer if usual else out
        state.day_usd, state.day = seen.outflow, seen.day


def _habits(seen: Comparison, trusted: bool) -> None:
    """Learn surprises, pace, hours, names and amounts of an event that counts as ordinary."""
    state, facts = seen.state, seen.facts
    # Running means start as the plain mean and then forget slowly
    share = max(1.0 / (seen.learned + 1.0), MEAN_RATE)
    if seen.has_tool:
        state.tool_surprise += (seen.unigram - state.tool_surprise) * share
        state.bigram_surprise += (seen.bigram - state.bigram_surprise) * share
    if seen.at - state.landmark > RESCALE_AFTER or not state.learned:
        # Before weights grow unwieldy, and at the first event
        state.scale(math.exp(-min((seen.at - state.landmark) / FADE, 700.0)))
        state.landmark = seen.at
    weight = math.exp((seen.at - state.landmark) / FADE)
    state.burst_level += (math.log1p(seen.burst) - state.burst_level) * share
    state.learned += weight
    state.add_hour(seen.hour, weight)
    _remember_names(seen, weight, trusted)
    if seen.action_type in TRANSACTIONS:
        state.count_trial(AMOUNT, facts.amount is None)
        if facts.amount is not None:
            state.add_amount(math.sqrt(facts.amount))
            known = len(state.amounts) // NUMBER
            share = LONG_RATE if known == MAX_AMOUNTS else max(LONG_RATE, 1.0 / known)
            state.usual_amount += (math.log1p(facts.amount) - state.usual_amount) * share


def _remember_names(seen: Comparison, weight: float, trusted: bool) -> None:
    """Add the event's names to the tables with this weight, and count which of them were new."""
    state, fading = seen.state, 1 / weight
    if seen.aims:
        _remember_places(seen, weight, fading, trusted)
    if seen.resource is not None:
        before = state.resources.add(seen.resource, weight, MAX_RESOURCES)
        state.count_trial(RESOURCE, before * fading < FORGOTTEN)
    for names, new, kind in (
        (seen.objects, seen.new_objects, OBJECT),
        (seen.containers, seen.new_containers, CONTAINER),
    ):
        if names:
            for name in names:
                state.objects.add(name, weight, MAX_OBJECTS)
            state.count_trial(kind, bool(new))
    if seen.act is not None:
        state.acts.add(seen.act, weight, MAX_ACTS)
    if seen.tool != OMITTED:
        # An event that sends nothing doesn't make it a habit that this tool sends without a target
        usually = 0.0 < state.tools.get(seen.tool) * EXPECTED <= state.aimed.get(seen.tool)
        if seen.destinations or (usually and seen.action_type not in SENDING):
            state.aimed.add(seen.tool, weight, MAX_TOOLS)
        state.tools.add(seen.tool, weight, MAX_TOOLS)
        state.bigrams.add(seen.pair, weight, MAX_BIGRAMS)


def _remember_places(seen: Comparison, weight: float, fading: float, trusted: bool) -> None:
    """Learn where an event went; new places, and the hosts of an event with one, wait for their probation."""
    state, kind = seen.state, AIM[seen.action_type]
    if not trusted:  # adds those whose probation is over
        _meet(seen)
    wait = [] if trusted else [name for name in seen.new_names if not state.destinations.knows(name, fading)]
    for name in seen.destinations:
        if trusted or not (name in seen.new_names or name in seen.ending):
            state.destinations.add(name, weight, MAX_DESTINATIONS)
    if trusted or not wait:
        state.count_trial(kind, bool(seen.new_names) or not seen.destinations)
    known = [name for name in seen.hosts if not wait or state.hosts.knows(name, fading)]
    if known:
        least = min([state.hosts.add(name, weight, MAX_HOSTS) for name in known])
        state.count_trial(HOST, least * fading < FORGOTTEN)


def _meet(seen: Comparison) -> None:
    """Note the new places as met; those whose probation is over are known from now on.

    An event counts once in the agent's rate of novelty, however many new places it names.
    """
    state, kind = seen.state, AIM[seen.action_type]
    first = [name for name in seen.new_names if not state.waiting.get(name)][:1]
    for name in seen.new_names + seen.ending:
        if meet(state.waiting, name, seen.day, kind, MAX_WAITING, is_counted=name not in first):
            state.destinations.add(name, math.exp((seen.at - state.landmark) / FADE), MAX_DESTINATIONS)
