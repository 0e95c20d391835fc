"""Merge two incidents of one attack: a person says that they are one."""

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from auditlog.vocabulary import Actor
from compliance.core import environments
from incidents import services
from incidents.errors import Unmergeable
from incidents.models import Incident, TouchedAgent, TouchedCertificate
from incidents.vocabulary import DoraClass, IncidentSeverity, IncidentState, SeriousHarm

MOST_AGENTS: Final = 100
_REPORTS: Final = ("ai_act_reported_at", "dora_initial_at", "dora_intermediate_at", "dora_final_at")
_JUDGED: Final = {
    "serious_harm": (SeriousHarm.UNDECIDED, SeriousHarm.NOT_SERIOUS),
    "dora_class": (DoraClass.UNDECIDED, DoraClass.NOT_MAJOR),
}
"""The statements that both must share, each with its values for undecided and for no duty."""
_INHERITED: Final = ("detected_at", "aware_at", "classified_at", "severity", "state")
_BY_SEVERITY: Final = tuple(IncidentSeverity)


def merge(
    *, tenant_id: UUID, incident_id: Any, into: Any, note: str = "", actor: Actor, now: datetime
) -> Incident:
    """End an incident as a part of another, which goes on with its agents; return the ended one.

    The earlier detection and awareness and the worse severity count. Raises IncidentNotFound, and Unmergeable
    if one of them has ended or if the other's clocks would not cover what this one's do.
    """
    with environments.atomic():
        incidents = Incident.objects.for_tenant(tenant_id)
        ids = [incidents.find(one).id for one in (incident_id, into)]
        # Always in one order: two people who merge the same two in opposite directions don't deadlock.
        locked = {row.id: row for row in incidents.locked().filter(id__in=ids).order_by("id")}
        ended, kept = locked[ids[0]], locked[ids[1]]
        _check(ended, kept)
        _move(ended, kept)
        before = {name: getattr(kept, name) for name in _INHERITED}
        _continue(ended, kept, now)
        after = {name: getattr(kept, name) for name in _INHERITED}
        ended.state, ended.merged_into = IncidentState.MERGED, kept
        ended.closed_at = ended.updated_at = now
        services.wind(ended)
        ended.save()
        said: dict[str, Any] = {"note": note, "actor": actor, "now": now}
        text = f"Merged with {ended.reference}"
        services.note_merged(incident=kept, text=text, other=ended, before=before, after=after, **said)
        services.note_merged(incident=ended, text=f"Merged into {kept.reference}", other=kept, **said)
    return ended


def _check(ended: Incident, kept: Incident) -> None:
    if ended.id == kept.id:
        raise Unmergeable("An incident can't be merged into itself")
    if ended.has_ended or kept.has_ended:
        raise Unmergeable("Only incidents that go on can be merged")
    if any(getattr(ended, name) for name in _REPORTS):
        raise Unmergeable("A report was sent about this incident: merge the other into it")
    for name, (undecided, negative) in _JUDGED.items():
        own, other = getattr(ended, name), getattr(kept, name)
        if own != other and (own != undecided or other == negative):
            raise Unmergeable(f"{name} differs: state the same of both, or merge the other into this one")
    if ended.agents.count() + kept.agents.count() > MOST_AGENTS:
        raise Unmergeable(f"An incident has at most {MOST_AGENTS} agents")


def _move(ended: Incident, kept: Incident) -> None:
    """Give the other incident the agents and certificates; this one keeps its rows as they were."""
    agents = list(ended.agents.all())
    ended.agents.update(is_current=False)
    names = ("agent_id", "agent_name", "since", "why", "case_number")
    TouchedAgent.objects.bulk_create(
        TouchedAgent(incident=kept, **{name: getattr(row, name) for name in names}) for row in agents
    )
    names = ("agent_id", "certificate_id", "serial_number", "since", "why")
    TouchedCertificate.objects.bulk_create(
        TouchedCertificate(incident=kept, **{name: getattr(row, name) for name in names})
        for row in ended.certificates.all()
    )


def _continue(ended: Incident, kept: Incident, now: datetime) -> None:
    """Let the clocks run from the earlier moments; while one of the two goes on doing harm, both do."""
    if kept.aware_at or ended.aware_at:
        kept.aware_at = min(kept.aware_at or kept.detected_at, ended.aware_at or ended.detected_at)
    kept.detected_at = min(kept.detected_at, ended.detected_at)
    if kept.classified_at is not None and ended.classified_at is not None:
        kept.classified_at = min(kept.classified_at, ended.classified_at)
    kept.severity = max(ended.severity, kept.severity, key=_BY_SEVERITY.index)
    if IncidentState.OPEN in (ended.state, kept.state):
        kept.state, kept.contained_at = IncidentState.OPEN, None
    kept.updated_at = now
    services.wind(kept)
    kept.save()
