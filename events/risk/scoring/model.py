"""The model: one event in, a verdict and the agent's next state out."""

import math
from collections.abc import Iterable
from functools import cache, lru_cache

from agents.risk import HIGH, MEDIUM, band_of
from events.risk.scoring.comparison import READ_BEFORE, Comparison
from events.risk.scoring.contract import (
    FAILURES,
    NO_CONTEXT,
    PRIOR_LOGITS,
    PRIORS,
    REPORTED,
    SENDING,
    TRANSACTIONS,
    UNCOUNTED,
    Context,
    Event,
    RiskVerdict,
    ScoreReason,
)
from events.risk.scoring.details import read
from events.risk.scoring.features import signals
from events.risk.scoring.learning import PSEUDO_EVENTS, learn, share_unknown
from events.risk.scoring.marked import marked_signals
from events.risk.scoring.names import DOING_VERBS, words_of
from events.risk.scoring.reasons import LEAST_TOLD, MEANINGS, Signal, declare, itself, strongest
from events.risk.scoring.rules import RULE_FLOOR, broken_rules, floor_of, outside_scope, scope_mismatch
from events.risk.scoring.state import DAY, SURPRISES, WIDTH, AgentState, Baseline
from tenancy.alarm_budgets import ALARM_BUDGET

MODEL_VERSION = "4.4"  # changes whenever the same events would score differently; stored with every event
MEDIUM_LOGIT = math.log(MEDIUM / (1 - MEDIUM))
BEND, PAST_BEND = 1.0, 0.2  # log-odds (a score of 0.73) past which what was said counts, and by which share
ENOUGH_HABITS = 30.0  # learned events (faded) from which habits may carry what was said into high
BELOW_HIGH = 0.84  # the most that they carry it to before

# The nats of surprise (-ln of the share of ordinary events that has more evidence, the last `RARE`), and at
# how much evidence all agents have them: with few, some and more learned events (`STAGES`), and for payments.
# Of public streams, as `bench/risk_model/prior.py` fits them.
NATS: tuple[float, ...] = (0.69, 1.2, 1.61, 2.3, 3.0, 3.91, 4.61, 5.3, 6.21, 8.52)
USUAL: tuple[tuple[float, ...], ...] = (
    (-2.94, -2.75, -2.74, -2.14, -1.35, -1.18, -0.77, -0.5, -0.46, -0.24),
    (-2.94, -2.75, -2.48, -2.09, -1.48, -0.82, -0.45, -0.35, 0.18, 1.36),
    (-3.48, -3.37, -2.75, -2.67, -2.06, -1.38, -0.98, -0.47, 0.0, 1.36),
    (-2.6, -2.43, -2.26, -2.07, -1.74, -1.4, -1.23, -1.08, -0.95, -0.25),
)
STAGES, PAYMENTS = (20.0, 60.0), 3
HALFWAY = MEDIUM / 2  # score from which events that are no alarm come ever nearer to medium
SETTLED = (
    0.5  # part of the budget that is the limit of an agent long known: its past was stranger than its days
)
YOUNG = 4.4  # times the budget that the limit is higher for an agent of which nothing is known
NARROWEST = 0.65  # part of the limit, at most of the default budget's, left however many alarms there were
TIRED = 2.0  # log-odds by which reported failures say less once alarms have used up the credit
BEYOND = 2.0  # nats of surprise for each log-odds beyond the last
STRANGE = 3.0  # log-odds by which what is new counts less among events as strange as can be
BOLDEST = 0.15  # the least part of all agents' chance to which an agent's own events can lower it
RARE = 1 / 5_000  # chance from which evidence may make an event high
SLOWLY = 8.0  # nats past RARE in which a high score nears RULE_FLOOR
ODD = 0.6  # counted events (faded) as surprising as a payment that may be high: half an alarm
MATURE, MATURE_FOR_PAYMENTS = 100.0, 20.0  # counted events (faded) from which a state can make one high
TOLD = 0.5  # log-odds from which a kind of evidence counts as one of its own
FAR = 1.0  # log-odds from which an amount, or a payee, is far outside habit
KINDS: dict[str, str] = {
    **dict.fromkeys(("new_destination", "read_then_send", "external_host", "many_destinations"), "place"),
    **dict.fromkeys(("new_resource", "new_object", "new_container", "many_resources"), "object"),
    **dict.fromkeys(("unusual_amount", "drifted_amount", "high_outflow", "near_trade_limit"), "amount"),
    **dict.fromkeys(("unusual_tool", "unusual_sequence"), "tool"),
    **dict.fromkeys(("burst", "unusual_hour", "repeated_failures"), "pace"),
}
"""Of which kind a signal is, where others are of the same; kinds are independent evidence."""
VOLUME = frozenset({"many_resources", "many_destinations", "high_outflow", "burst"})


def fold(state: AgentState, event: Event, context: Context, baseline: Baseline | None = None) -> RiskVerdict:
    """Score an agent's event and fold it into `state` itself; the tenant's `baseline` is only read.

    Only low events become habits, so that an attack doesn't; of a medium one the places, payees and acts are
    noted (`learning`). Raises KeyError for an unknown `action_type`, and leaves `state` as it was.
    """
    seen = Comparison(state, event)
    prior_logit = PRIOR_LOGITS[seen.scored_as]
    outside = outside_scope(seen, context)
    broken = broken_rules(seen, context, outside)
    evidence = weigh(seen, prior_logit, context, baseline)
    said = scope_mismatch(seen, context, outside)
    if context.marked.confirmed:
        said += marked_signals(seen, context.marked)
    score = 0.0
    if seen.surprise >= 0.0:
        score = calibrated(seen, prior_logit + seen.excess, evidence, said, context.alarm_budget, baseline)
    if said or seen.action_type in REPORTED:
        score = max(score, as_said(seen, prior_logit, evidence + said, baseline))
    if broken:
        score = max(score, floor_of(len(broken)))
    score = int(score * 10_000 + 0.5) / 10_000  # round() takes three times as long
    evidence += said
    band = band_of(score)
    if broken:
        reasons = strongest(broken, evidence)
    else:
        prior = _worth_by_itself(seen.scored_as)
        # First where it decides, last where there is room
        if prior_logit >= MEDIUM_LOGIT:
            reasons = (prior, *strongest([], evidence, 2))
        else:
            reasons = (*strongest([], evidence), prior)[:3]
    learn(seen, band, context.alarm_budget)
    return RiskVerdict(score, band, reasons, MODEL_VERSION)


def weigh(seen: Comparison, prior_logit: float, context: Context, baseline: Baseline | None) -> list[Signal]:
    """Return the evidence of an event, and note on `seen` how much it is and how surprising.

    Where the agent has just begun something new, what is new says less, but not how much it does of it. What
    an agent reports went wrong is not measured by how often it does that.
    """
    evidence = signals(seen, context, baseline)
    total = volume = 0.0
    for name, weight, _, _ in evidence:  # not sum(), which rounds differently from one Python to the next
        total += weight
        if name in VOLUME:
            volume += weight
    seen.excess = total
    seen.counts = prior_logit + max(total - STRANGE * seen.strange, volume)
    if seen.action_type not in UNCOUNTED:
        seen.surprise = surprise_of(seen.counts, row_of(seen))
    return evidence


def row_of(seen: Comparison) -> int:
    """Return with which of all agents' events an event is compared: a row of `USUAL`."""
    if seen.action_type in TRANSACTIONS and seen.reads <= READ_BEFORE:
        return PAYMENTS
    return (seen.learned >= STAGES[0]) + (seen.learned >= STAGES[1])


def surprise_of(logit: float, row: int) -> float:
    """Return the nats of surprise at so much evidence: more for more, among all agents' ordinary events."""
    usual, nats = USUAL[row], NATS
    above = below = usual[0]
    if logit <= below:
        return nats[0] * math.exp(logit - below)
    for place in range(1, len(usual)):
        above = usual[place]
        if logit <= above:
            least = nats[place - 1]
            return least + (logit - below) / (above - below) * (nats[place] - least)
        below = above
    return nats[-1] + (logit - below) * BEYOND


def calibrated(
    seen: Comparison,
    logit: float,
    evidence: list[Signal],
    said: list[Signal],
    budget: float,
    baseline: Baseline | None,
) -> float:
    """Return the score of an event: 0.30 where its share is what `limit_of` allows, higher the rarer it is.

    The share is among the agent's own events, beside some of its tenant's, and those beside some of all
    agents', which count while there are few. Events that are no alarm keep the order of their evidence, in
    log-odds. What was `said` surprises by as much.
    """
    state, surprise = seen.state, seen.surprise
    pseudo = PSEUDO_EVENTS * max(ALARM_BUDGET / budget, 1.0)  # the rarer an alarm, the more events show it
    for _, weight, _, _ in said:
        surprise += weight
        logit += weight
    place = min(int(surprise / WIDTH), SURPRISES - 1)
    usual = among_all = math.exp(-surprise)
    if baseline is not None:
        tenants = baseline.surprises_from(0)
        usual = (baseline.surprises_from(place) + pseudo * among_all) / (tenants + pseudo)
    counted, above = state.surprises_from(0) * seen.fading, state.surprises_from(place) * seen.fading
    chance = (above + pseudo * usual) / (counted + pseudo)
    chance = min(max(chance, among_all * BOLDEST), 1.0)
    is_rare = among_all <= RARE and chance <= budget and knows_none(seen, counted, above)
    if is_rare and is_telling(seen, evidence + said):
        return HIGH + (RULE_FLOOR - HIGH) * (1.0 - math.exp((math.log(among_all) - math.log(RARE)) / SLOWLY))
    limit = limit_of(budget, state.credit, counted)
    if chance > limit:
        score = 1 / (1 + math.exp(-logit))
        return score if score <= HALFWAY else MEDIUM - HALFWAY * math.exp(1.0 - score / HALFWAY)
    # Tight budgets' limits come near RARE, or under it
    beyond = math.log(limit / chance) / max(math.log(limit / RARE), 1.0)
    return MEDIUM + (BELOW_HIGH - MEDIUM) * (1.0 - math.exp(-beyond))


def limit_of(budget: float, credit: float, counted: float) -> float:
    """Return the chance from which an event is an alarm: higher for a little known agent, less after alarms.

    Of budgets below the default one the square counts: the rarest events come in runs.
    """
    times, unknown = budget / ALARM_BUDGET, share_unknown(counted)
    limit = min(times * times, 1.0) * ALARM_BUDGET * (SETTLED + YOUNG * unknown * unknown)
    more = max(budget - ALARM_BUDGET, 0.0) * SETTLED
    return limit * (NARROWEST + (1.0 - NARROWEST) * credit) + more * credit


def knows_none(seen: Comparison, counted: float, above: float) -> bool:
    """Return whether a mature agent had none as surprising: for a payment, fewer events tell."""
    if row_of(seen) == PAYMENTS:
        return counted >= MATURE_FOR_PAYMENTS and above <= ODD
    return counted >= MATURE and above == 0.0


def is_telling(seen: Comparison, evidence: list[Signal]) -> bool:
    """Return whether an act that moves something has two kinds of evidence against it.

    For a payment that follows no read, an amount or a payee far outside habit is enough.
    """
    act, kind = seen.act, seen.action_type
    if not (act is not None or kind in TRANSACTIONS or moves(kind, seen.facts.tool)):
        return False
    sums: dict[str, float] = {}
    for name, weight, _, _ in evidence:
        kind = KINDS.get(name, name)
        sums[kind] = sums.get(kind, 0.0) + weight
    if row_of(seen) == PAYMENTS and max(sums.get("amount", 0.0), sums.get("place", 0.0)) >= FAR:
        return True
    return sum([weight >= TOLD for weight in sums.values()]) >= 2


@lru_cache(maxsize=4_096)
def moves(action_type: str, tool: str | None) -> bool:
    """Return whether a call sends, pays, changes, grants or deletes, by its type or its tool's name."""
    return action_type == "data_mutation" or (
        action_type in SENDING and not DOING_VERBS.isdisjoint(words_of(tool or ""))
    )


def as_said(seen: Comparison, prior_logit: float, evidence: list[Signal], baseline: Baseline | None) -> float:
    """Return the score of what the agent or an officer said, with all evidence in log-odds beside it."""
    logit = prior_logit
    for _, weight, _, _ in evidence:
        logit += weight
    if seen.action_type in FAILURES:
        logit -= TIRED * (1.0 - seen.state.credit)
    if logit > BEND:
        logit = BEND + (logit - BEND) * PAST_BEND
    score = 1 / (1 + math.exp(-logit))
    is_grown = seen.learned >= ENOUGH_HABITS or (baseline is not None and baseline.is_enough(seen.at))
    return score if is_grown else min(score, BELOW_HIGH)


ORDINARY = "ordinary"  # the band under which `relearn()` takes an event that an officer dismissed
LAST_MINUTES = (
    "last_at", "burst", "reads", "failures", "anomalies", "last_tool", "day", "day_usd", "burst_level",
    "fresh", "fresh_peak", "hour_new", "day_new", "days", "usual_outflow", "usual_new", "usual_fresh",
    "strange",
)  # fmt: skip


def teach(
    state: AgentState, event: Event, context: Context = NO_CONTEXT, baseline: Baseline | None = None
) -> None:
    """Fold an event that is known to be ordinary into `state`, whatever it would score."""
    learn(weighed(state, event, context, baseline), "low", trusted=True)


def teach_late(state: AgentState, event: Event, context: Context = NO_CONTEXT) -> None:
    """Teach an event that was scored before; `LAST_MINUTES` stay, since they count it already."""
    before = {name: getattr(state, name) for name in LAST_MINUTES}
    teach(state, event, context)
    for name, value in before.items():
        setattr(state, name, value)


def relearn(
    known: Iterable[tuple[Event, str]],
    *,
    start: AgentState | None = None,
    context: Context = NO_CONTEXT,
    baseline: Baseline | None = None,
) -> AgentState:
    """Return the state after one agent's events, oldest first, each with its band or `ORDINARY`.

    They are folded into `start` itself, or into an empty state. What `context` and `baseline` said counts in
    how surprising they were, if it is known.
    """
    state = start or AgentState()
    for event, band in known:
        if band == ORDINARY:
            teach(state, event, context, baseline)
        else:
            learn(weighed(state, event, context, baseline), band, context.alarm_budget)
    return state


def weighed(state: AgentState, event: Event, context: Context, baseline: Baseline | None) -> Comparison:
    """Return the event beside its agent's state, and how surprising it is."""
    seen = Comparison(state, event)
    weigh(seen, PRIOR_LOGITS[seen.scored_as], context, baseline)
    return seen


def with_day_total(state: AgentState, events: Iterable[Event], *, received_at: float) -> AgentState:
    """Return a copy of `state` whose daily total is that of all `events` on the UTC day of `received_at`."""
    day = int(received_at // DAY)
    total = sum(
        read(event.details).amount or 0.0
        for event in events
        if event.action_type in TRANSACTIONS and int(event.received_at // DAY) == day
    )
    counted = state.changeable()
    counted.day, counted.day_usd = day, total
    return counted


declare("action_type", "What such an action is worth by itself", itself, "scores {:.2f} by itself".format)


@cache
def _worth_by_itself(action_type: str) -> ScoreReason:
    (prior,) = strongest([("action_type", LEAST_TOLD, action_type, PRIORS[action_type])], [])
    return prior


def in_words(name: str) -> str:
    """Return the reason's sentence, or its name in words."""
    meaning = MEANINGS.get(name)
    return meaning.sentence if meaning else name.replace("_", " ").capitalize()
