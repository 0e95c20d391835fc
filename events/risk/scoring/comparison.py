"""An event compared with its agent's state: what features and learning both need."""

import math

from events.risk.scoring.contract import DOING, REPORTED, SENDING, TRANSACTIONS, Event
from events.risk.scoring.details import ActionFacts, read
from events.risk.scoring.state import AIM, DAY, KIND, NO_NAME, AgentState
from events.risk.scoring.tables import OMITTED, act_digest, digest, ends_probation, pair_digest, was_met

MATURITY_HALF = 15.0  # learned events at which habits count for half
HOST, RESOURCE, AMOUNT = KIND["host"], KIND["resource"], KIND["amount"]
OBJECT, CONTAINER = KIND["object"], KIND["container"]
BURST_FADE, READ_FADE, FAILURE_FADE, ANOMALY_FADE = 60.0, 7_200.0, 600.0, 900.0  # seconds to 1/e
FRESH_FADE = 3_600.0  # seconds to 1/e of the counts of new resources and places, and of what is strange
SESSION_GAP = 300.0  # seconds of silence that end a run of tools
HOUR = 3_600.0
EXPECTED = 0.9  # share of a tool's uses with a target from which leaving the target out is no habit
READ_BEFORE = 0.1  # faded reads above which a send follows reading: up to 4.6 hours after one read


class Comparison:
    """An event's type and facts, its agent's state, and what they are to each other. Names are digests.

    - Time: `at` (epoch seconds of receipt), `hour` (UTC), `day` (since the epoch), `begins_day` (the agent's
      first event of that day). `fading`: the factor for stored weights.
    - Experience: `learned` (learned events, faded) and `maturity` (0 to 1).
    - Tool: `tool` (or OMITTED), `pair` (the tool before and this one). `has_tool`: a tool is stated or should
      have been; then `unigram` and `bigram` are the surprises of `tool` and `pair` in nats.
    - Places: `destinations`. If the event sends something: `hosts`; `new`, the targets that the agent doesn't
      know, and `new_names`, their digests; `ending`, those whose probation ends with this event. `aims`: it
      sends to a target, stated or not. `is_further`: to one that the agent never met, even on probation.
    - Things: `resource`, and whether it `is_fresh` (not known). If the event sends something: `objects` (all
      resources), `containers`, those of each that the agent never acted on (`new_objects`,
      `new_containers`), and the `act`.
    - Counts that fade, without this event: `burst`, `failures` and `anomalies` of minutes, `fresh` (new
      resources) of an hour, `reads` of hours. With this event: `hour_new` and `day_new`, the events that went
      further, and `outflow`, the day's dollars if it is a transaction, else 0.
    - `scored_as`: the action type whose prior counts; what says where it sends to counts as a call.
    - Evidence, as `model` finds it: its sum `excess`; what of it `counts`, beside the prior, in log-odds; the
      `surprise` at that (below 0: none is counted);
      `strange`, the fading mean of `excess` up to 1 over the events before.
    """

    def __init__(self, state: AgentState, event: Event) -> None:
        """Compare the event with its agent's state, which stays as it is."""
        self.state, self.facts, self.at = state, read(event.details), event.received_at
        self.action_type = event.action_type
        # Compiled, these have the attributes' types, which arguments do not.
        before, at, facts, action_type = self.state, self.at, self.facts, self.action_type
        self.excess, self.counts, self.surprise = 0.0, 0.0, -1.0
        self.fading = before.fading(at)
        self.learned = before.learned * self.fading
        self.maturity = self.learned / (self.learned + MATURITY_HALF)
        self.hour = int(at % DAY // HOUR)
        self.day = int(at // DAY)
        self.begins_day = self.day != int(before.last_at // DAY)
        self.outflow = 0.0
        if action_type in TRANSACTIONS:
            self.outflow = (before.day_usd if before.day == self.day else 0.0) + (facts.amount or 0.0)
        # A clock that was set back starts the last minutes afresh, as one that ran on would
        elapsed = abs(at - before.last_at)
        self.burst = before.burst * math.exp(-elapsed / BURST_FADE)
        self.reads = before.reads * math.exp(-elapsed / READ_FADE) if before.reads else 0.0
        self.failures = before.failures * math.exp(-elapsed / FAILURE_FADE) if before.failures else 0.0
        self.anomalies = before.anomalies * math.exp(-elapsed / ANOMALY_FADE) if before.anomalies else 0.0
        recent = math.exp(-elapsed / FRESH_FADE)
        self.fresh, self.strange = before.fresh * recent, before.strange * recent
        self._see_tool(before, facts, before.last_tool if elapsed < SESSION_GAP else NO_NAME)
        # What names where it goes, but not that it reads, may be a send whatever it is reported as
        sends = action_type in SENDING or (
            action_type not in REPORTED and bool(facts.targets) and not facts.brings_text
        )
        self._see_places(before, facts, sends)
        self.scored_as = "api_call" if self.aims and action_type not in SENDING else action_type
        self.hour_new = before.hour_new * recent + self.is_further
        self.day_new = (0.0 if self.begins_day else before.day_new) + self.is_further
        self._see_things(before, facts, sends)

    def _see_tool(self, state: AgentState, facts: ActionFacts, previous: bytes) -> None:
        self.tool = digest(facts.tool) if facts.tool else OMITTED
        self.pair = pair_digest(previous, self.tool)
        self.has_tool = self.action_type in DOING or facts.tool is not None
        self.unigram = self.bigram = 0.0
        if self.has_tool:
            # Smoothed shares: of this tool among all, and after the one before, backed off to the former
            tools = state.tools
            share = (tools.get(self.tool) * self.fading + 1.0 / (len(tools) + 1)) / (self.learned + 1.0)
            count, before = state.bigrams.get(self.pair) * self.fading, tools.get(previous) * self.fading
            self.unigram = -math.log(share)
            self.bigram = -math.log((count + share) / (max(count, before) + 1.0))

    def _see_places(self, state: AgentState, facts: ActionFacts, sends: bool) -> None:
        """Tell known from unknown destinations, and whether the agent goes where it never was."""
        targets = facts.targets
        self.destinations = [digest(name) for name in targets]
        self.hosts = [digest(name) for name in facts.hosts] if sends else []
        self.new: list[str] = []
        self.new_names: list[bytes] = []
        self.ending: list[bytes] = []
        if not targets:
            # A tool that is new, of an event without a resource, or that mostly had a target names one
            uses = state.tools.get(self.tool)
            is_expected = state.aimed.get(self.tool) >= uses * EXPECTED
            self.aims = sends and is_expected and (facts.resource is None or uses > 0.0)
            self.is_further = self.aims
            return
        self.aims, self.is_further = sends, False
        if not sends:
            return
        kind = AIM[self.action_type]
        for place, name in enumerate(self.destinations):
            if state.destinations.knows(name, self.fading):
                continue
            if ends_probation(state.waiting, name, self.day):
                self.ending.append(name)
            else:
                self.new.append(targets[place])
                self.new_names.append(name)
                self.is_further = self.is_further or not was_met(state.waiting, name, kind)

    def _see_things(self, state: AgentState, facts: ActionFacts, sends: bool) -> None:
        """Tell known from unknown resources, and objects and containers that the event acts on."""
        self.resource = digest(facts.resource) if facts.resource else None
        self.is_fresh = self.resource is not None and not state.resources.knows(self.resource, self.fading)
        self.objects = [digest(name) for name in facts.resources] if sends else []
        self.containers = [digest(name) for name in facts.containers] if sends else []
        known = state.objects
        self.new_objects = [name for name in self.objects if not known.knows(name, self.fading)]
        self.new_containers = [name for name in self.containers if not known.knows(name, self.fading)]
        self.act = act_digest(facts.act) if facts.act is not None and sends else None
