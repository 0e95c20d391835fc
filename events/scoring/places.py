"""Where an attack went: the places that an officer's confirmation marks, and events that go there again."""

from collections.abc import Collection, Iterator

from events.scoring.contract import Context, Event
from events.scoring.details import QUOTES, Facts, read
from events.scoring.state import AgentState
from events.scoring.tables import Table, digest

MOST_PLACES = 16
"""Most places that one event can mark."""
MORE_THAN_ONCE = 1.5
"""Faded sightings from which a place is known apart from the event itself, where that was learned."""


def places_of(event: Event, state: AgentState, context: Context, *, was_learned: bool) -> tuple[str, ...]:
    """The places to mark when `event` is part of an attack; `was_learned`: it scored low.

    What the agent knew from other events is left out: one address among known colleagues is what matters. If
    it knew all of them, its known accounts and addresses are marked, but no hosts, which others share. Never
    marked are the agent's own domain, the hosts of mail addresses, and paths.
    """
    facts = read(event.details)
    fading = state.fading(event.received_at)
    hosts = set(_own_hosts(facts))
    found = [name for name in dict.fromkeys((*facts.targets, *_own_hosts(facts))) if _is_place(name, context)]
    enough = MORE_THAN_ONCE if was_learned else 0.0

    def is_known(name: str) -> bool:
        tables = (state.destinations, state.hosts) if name in hosts else (state.destinations,)
        return any(_weight(table, name, fading) > enough for table in tables)

    new = [name for name in found if not is_known(name)]
    return tuple((new or [name for name in found if name not in hosts])[:MOST_PLACES])


def marked_place(facts: Facts, marked: Collection[str]) -> str | None:
    """The first marked place that an event names: as a target, as a host, or as a domain above one."""
    for target in facts.targets:
        if target in marked:
            return target
    for host in facts.hosts:
        for domain in _upwards(host):
            if domain in marked:
                return host
    return None


def _upwards(host: str) -> Iterator[str]:
    """The host and the domains that it lies in."""
    while host:
        yield host
        host = host.partition(".")[2]


def _own_hosts(facts: Facts) -> list[str]:
    """Hosts that were named as such, apart from those of mail addresses."""
    mail = {target.rpartition("@")[2].strip(QUOTES) for target in facts.targets if "@" in target}
    return [host for host in facts.hosts if host not in mail]


def _is_place(name: str, context: Context) -> bool:
    home, host = context.home_domain, name.rpartition("@")[2]
    is_home = home is not None and (host == home or host.endswith("." + home))
    # "3 more" is how reading puts what a long list hides.
    hides = name.endswith(" more") and name.partition(" ")[0].isdigit()
    return not (is_home or hides or name.startswith("/"))


def _weight(table: Table, name: str, fading: float) -> float:
    return table.get(digest(name)) * fading
