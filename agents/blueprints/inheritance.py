"""What an agent has from its blueprint, what it may state itself, and where the two differ."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from django.db.models import Q

from agents.errors import WiderThanBlueprint
from agents.models import OWNER_ROLES, Agent, AgentStatus, Blueprint
from agents.querysets import AgentQuerySet
from compliance.core.json_values import same_json

SAME: Final = ("model", "model_hash", "version")
"""What an agent of the kind is: it states the same or nothing."""
INHERITED: Final = (
    *(*SAME, "permitted_actions", "financial_scope", "validity_days", "alarm_budget"),
    *OWNER_ROLES,
)
CERTIFIED: Final = (*SAME, "permitted_actions", "validity_days")
"""What takes effect with a new certificate."""
_LEAST: Final = ("max_single_trade_usd", "daily_limit_usd", "leverage_permitted")
"""Of two the lesser is narrower; false is less than true."""
_LISTS: Final = ("permitted_instruments", "permitted_venues")
_RATIO: Final = "max_leverage_ratio"
_UNLEVERED: Final = 1.0
"""The ratio of an agent that may not use leverage."""


def values_of(row: Agent | Blueprint) -> dict[str, Any]:
    """Return what the row states of the fields that can be inherited; None: nothing."""
    return {name: getattr(row, name) for name in INHERITED}


def keep_within(agent: Agent, blueprint: Blueprint, touched: Collection[str]) -> None:
    """Have an agent inherit those of the `touched` fields that it does not state.

    One that it states itself stays its own where it becomes the blueprint's value: as a narrowed one does.
    Raises: WiderThanBlueprint if it states one beyond the blueprint's.
    """
    limits = values_of(blueprint)
    inherited = [name for name in touched if getattr(agent, name) is None]
    for name in inherited:
        if limits[name] is not None:
            setattr(agent, name, limits[name])
    stated = values_of(agent)
    if wider := [name for name in touched if _narrowed(name, stated[name], limits[name]) != stated[name]]:
        raise WiderThanBlueprint(wider)
    own = {name for name in touched if not same_json(stated[name], limits[name])}
    agent.own_fields = sorted({*agent.own_fields}.difference(inherited) | own)


def brought_up(agent: Agent, blueprint: Blueprint) -> dict[str, Any]:
    """Return the fields in which an agent differs from its blueprint, with what they should be.

    An inherited field should be the blueprint's; one that the agent states itself, at most that. What a
    blueprint does not state is left as it is.
    """
    found: dict[str, Any] = {}
    for name, limit in values_of(blueprint).items():
        value = getattr(agent, name)
        if limit is None or same_json(value, limit):
            continue
        if name not in agent.own_fields:
            found[name] = limit
        elif (narrowed := _narrowed(name, value, limit)) != value:
            found[name] = narrowed
    return found


def differing(blueprint: Blueprint) -> AgentQuerySet:
    """Return the agents of a blueprint, but retired ones, for which `brought_up` finds something.

    The database compares what they inherit; only agents that state something themselves are read.
    """
    agents = Agent.objects.for_tenant(blueprint.tenant_id).filter(blueprint_id=blueprint.id)
    agents, inherits = agents.exclude(status=AgentStatus.RETIRED), Q()
    for name, limit in values_of(blueprint).items():
        if limit is not None:
            inherits &= Q(own_fields__contains=[name]) | _equal(name, limit)
    alike = agents.filter(inherits)
    beyond = [one.id for one in alike.exclude(own_fields=[]).iterator() if brought_up(one, blueprint)]
    return agents.filter(~Q(id__in=alike.values("id")) | Q(id__in=beyond))


def _equal(name: str, limit: Any) -> Q:
    if name in OWNER_ROLES:
        return Q(**{f"{name}_{part}": value for part, value in limit.items()})
    if name == "permitted_actions":
        # The older key `scopes` gives an empty scope.
        unstated = Q(metadata__permitted_actions__isnull=True) | Q(metadata__permitted_actions=None)
        empty = unstated & Q(metadata__has_key="scopes") if limit == [] else Q()
        return Q(metadata__permitted_actions=limit) | empty
    return Q(**{name: limit})


def _narrowed(name: str, value: Any, limit: Any) -> Any:
    """Return what is left of an agent's own value within the blueprint's, None: that states none."""
    if limit is None or name not in _NARROWED:
        return value
    return limit if value is None else _NARROWED[name](value, limit)


def _common(own: Sequence[str], limit: Sequence[str]) -> list[str]:
    return [one for one in own if one in limit]


def _narrowed_scope(own: Mapping[str, Any], limit: Mapping[str, Any]) -> dict[str, Any]:
    unstated = math.inf if own["leverage_permitted"] else _UNLEVERED
    is_beyond = own.get(_RATIO, unstated) > limit.get(_RATIO, math.inf)
    return {
        **own,
        **{one: min(own[one], limit[one]) for one in _LEAST},
        **{one: _common(own[one], limit[one]) for one in _LISTS},
        **({_RATIO: limit[_RATIO]} if is_beyond else {}),
    }


_NARROWED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    **dict.fromkeys(SAME, lambda _, limit: limit),
    "permitted_actions": _common,
    "financial_scope": _narrowed_scope,
    "validity_days": min,
}
"""What an agent may narrow, or state the same; any other inherited field it may state as it likes."""
