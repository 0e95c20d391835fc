"""Statements of officers about an incident, and the rules between them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from incidents.errors import DutiesOpen, InconsistentStatement
from incidents.vocabulary import DoraClass, IncidentState, SeriousHarm

if TYPE_CHECKING:
    from incidents.models import Incident

MOMENTS: Final = (
    *("aware_at", "ai_act_reported_at", "classified_at"),
    *("dora_initial_at", "dora_intermediate_at", "dora_final_at"),
)
EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
_CHAIN: Final = ("classified_at", "dora_initial_at", "dora_intermediate_at", "dora_final_at")


def settle(incident: "Incident", changes: Mapping[str, Any], now: datetime) -> list[str]:
    """Set the fields and what follows from them; return the names of all fields to save.

    Classified as major without a time: at `now`. No longer major: without the times of DORA's reports, which
    the timeline keeps.
    """
    touched = {*changes, "updated_at"}
    for name, value in changes.items():
        setattr(incident, name, value)
    if "state" in changes:
        touched |= {"contained_at", "closed_at"}
        if incident.state == IncidentState.OPEN:
            incident.contained_at = None
        elif incident.state == IncidentState.CONTAINED:
            incident.contained_at = incident.contained_at or now
        incident.closed_at = now if incident.state == IncidentState.CLOSED else None
    if "dora_class" in changes and incident.dora_class == DoraClass.MAJOR:
        incident.classified_at = incident.classified_at or now
    elif "dora_class" in changes:
        for name in _CHAIN:
            if name not in changes:
                setattr(incident, name, None)
    if "serious_harm" in changes and incident.serious_harm == SeriousHarm.NOT_SERIOUS:
        incident.ai_act_reported_at = changes.get("ai_act_reported_at")
    incident.updated_at = now
    return sorted({*touched, *_CHAIN, "ai_act_reported_at"})


def check(incident: "Incident", now: datetime) -> None:
    """Raise InconsistentStatement or DutiesOpen for an incident that may not be stored like this."""
    for name in MOMENTS:
        moment = getattr(incident, name)
        if moment is not None and not EARLIEST <= moment <= now:
            raise InconsistentStatement(f"{name} must be a moment of the past")
    if incident.serious_harm == SeriousHarm.NOT_SERIOUS and incident.ai_act_reported_at:
        raise InconsistentStatement("ai_act_reported_at belongs to a serious incident")
    if incident.dora_class != DoraClass.MAJOR and any(getattr(incident, name) for name in _CHAIN):
        raise InconsistentStatement(f"{', '.join(_CHAIN)} belong to an incident with dora_class major")
    if incident.dora_class == DoraClass.MAJOR and incident.classified_at is None:
        raise InconsistentStatement("classified_at belongs to an incident with dora_class major")
    for earlier, later in pairwise(_CHAIN[1:]):
        first, second = getattr(incident, earlier), getattr(incident, later)
        if second is not None and (first is None or second < first):
            raise InconsistentStatement(f"{later} must follow {earlier}")
    if incident.has_ended and any(clock.is_open for clock in incident.clocks()):
        raise DutiesOpen()
