"""What is learned of events that were scored before: again from what was stored, or later by a verdict."""

from collections.abc import Iterable

from events.scoring.contract import Event
from events.scoring.details import read
from events.scoring.learning import learn
from events.scoring.model import teach
from events.scoring.packed import NAME
from events.scoring.state import MAX_DESTINATIONS, MAX_HOSTS, MAX_WAITING, AgentState
from events.scoring.tables import digest
from events.scoring.view import view

ORDINARY = "ordinary"
"""How an event is learned that an officer dismissed; others are learned by their band."""
MOST_TAKEN_IN = 32
LAST_MINUTES = (
    "last_at", "burst", "reads", "failures", "anomalies", "last_tool", "day", "day_usd", "burst_level",
)  # fmt: skip


def relearn(known: Iterable[tuple[Event, str]], *, start: AgentState | None = None) -> AgentState:
    """The state after events of one agent, oldest first, each with its band, or `ORDINARY`.

    As if they had been folded in one by one, whatever was held of their tenant at the time. They go on from
    `start`, which is left as it was, or from nothing.
    """
    state = AgentState() if start is None else start.changeable()
    for event, band in known:
        if band == ORDINARY:
            teach(state, event)
        else:
            facts = read(event.details)
            learn(state, event, facts, view(state, event, facts), band=band)
    return state


def has_taken_in(state: AgentState, identity: bytes) -> bool:
    """Whether the state says that it holds this event or verdict already."""
    name = identity[-NAME:]
    held = state.taken_in
    return any(held[at : at + NAME] == name for at in range(0, len(held), NAME))


def note_taken_in(state: AgentState, identities: Iterable[bytes]) -> None:
    """Have the state say that it holds these events or verdicts; the last few, by the random ends of ids."""
    held = state.taken_in + b"".join(identity[-NAME:] for identity in identities)
    state.taken_in = held[-MOST_TAKEN_IN * NAME :]


def teach_late(state: AgentState, event: Event) -> None:
    """Learn from a past event as from an ordinary one; the last minutes, where it was counted, stay."""
    before = {name: getattr(state, name) for name in LAST_MINUTES}
    teach(state, event)
    for name, value in before.items():
        setattr(state, name, value)


def unlearn(state: AgentState, places: Iterable[str]) -> None:
    """Forget that the agent knows these places."""
    for place in places:
        name = digest(place)
        for table, limit in (
            (state.destinations, MAX_DESTINATIONS),
            (state.hosts, MAX_HOSTS),
            (state.waiting, MAX_WAITING),
        ):
            weight = table.get(name)
            if weight:
                table.add(name, -weight, limit)
