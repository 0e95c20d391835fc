"""Open incidents, join them, and change them; every step is in the timeline and in the audit log."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Q

from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.stores import sql
from incidents.duties.statements import check, settle
from incidents.errors import IncidentClosed, IncidentMerged
from incidents.models import Incident, TimelineEntry, TouchedAgent, TouchedCertificate
from incidents.vocabulary import EntryKind, IncidentCause, IncidentState, Occurrence
from webhooks.publishing import publish
from webhooks.vocabulary import EventName

_TITLES: Final = {
    IncidentCause.THRESHOLD: "Stopped by the service",
    IncidentCause.REVOCATION: "Certificate revoked",
    IncidentCause.VERDICT: "Confirmed attack",
}
CASES: Final = 0x63617365  # "case": the first key of the advisory locks of case numbers
_CLOCKWORK: Final = ("next_announcement_at", "next_due_at")


def open_or_join(
    *, tenant_id: UUID, occurrence: Occurrence, actor: Actor, now: datetime
) -> tuple[Incident, bool]:
    """Join the agent's open incident, or that of its case, or open one; return it, and whether it is new.

    Belongs inside the transaction of what happened, under the agent's row lock: two calls for an agent
    cannot both open one (and the database would refuse the second).
    """
    if occurrence.case_number:
        # Two agents of one case may come at the same moment, each under its own agent's lock alone.
        case = f"{tenant_id} {occurrence.case_number}"
        sql.query("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [CASES, case])
    found = find_ongoing(tenant_id, Q(agent_id=occurrence.agent_id))
    if found is None and occurrence.case_number:
        found = find_ongoing(tenant_id, Q(case_number=occurrence.case_number))
    if found is not None:
        _join(found, occurrence, actor, now)
        return found, False
    return _open(tenant_id, occurrence, actor, now), True


def find_ongoing(tenant_id: UUID, touched: Q) -> Incident | None:
    """Lock and return the incident that goes on and touches such an agent.

    Ending or merging an incident holds its lock: looked up again, since the row may have ended meanwhile.
    """
    current = TouchedAgent.objects.filter(touched, incident__tenant_id=tenant_id, is_current=True)
    while row := current.order_by("since", "id").first():
        found = Incident.objects.ongoing().locked().filter(id=row.incident_id).first()
        if found is not None:
            return found
    return None


def update(
    *,
    tenant_id: UUID,
    incident_id: Any,
    changes: Mapping[str, Any],
    note: str = "",
    attachment: dict[str, Any] | None = None,
    actor: Actor,
    now: datetime,
) -> Incident:
    """Set fields that officers state, and add a note or an attachment; all of it or nothing.

    `attachment`: the `name`, the `size` in octets and the `sha256` in hex of a file that the officer keeps.
    Raises IncidentNotFound, IncidentClosed or IncidentMerged (one that has ended takes only notes and
    attachments), DutiesOpen and InconsistentStatement.
    """
    with environments.atomic():
        incident = Incident.objects.for_tenant(tenant_id).locked().find(incident_id)
        _change(incident, changes, actor, now)
        if note:
            enter(incident, EntryKind.NOTE, note, actor, now)
            _record(incident, AuditAction.INCIDENT_NOTED, "Note added to", actor, now, note=note)
        if attachment is not None:
            text = f"Attached by digest: {attachment['name']}"
            enter(incident, EntryKind.ATTACHMENT, text, actor, now, data=attachment)
            _record(incident, AuditAction.INCIDENT_ATTACHED, "Attachment added to", actor, now, **attachment)
    return incident


def note_reinstated(
    *, tenant_id: UUID, agent_id: UUID, agent_name: str, reason: str, actor: Actor, now: datetime
) -> None:
    """Record a reinstatement in the agent's ongoing incident, if there is one; reopen it if contained.

    Belongs inside the transaction of the reinstatement, under the agent's row lock.
    """
    incident = find_ongoing(tenant_id, Q(agent_id=agent_id))
    if incident is None:
        return
    text, named = f"Agent {agent_name} reinstated: {reason}", {"agent_id": str(agent_id)}
    enter(incident, EntryKind.JOINED, text, actor, now, data=named)
    _record(incident, AuditAction.INCIDENT_JOINED, "Reinstatement joined", actor, now, reinstated=named)
    if incident.state == IncidentState.CONTAINED:
        _change(incident, {"state": IncidentState.OPEN}, actor, now)


def note_merged(
    *,
    incident: Incident,
    text: str,
    other: Incident,
    note: str,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    actor: Actor,
    now: datetime,
) -> None:
    """Enter and audit that the locked incident and another were merged, and which fields changed by it."""
    named = {"incident_id": str(other.id), "reference": other.reference}
    told, changes = _difference(before or {}, after or {})
    whole = f"{text}. {told}" if told else text
    enter(incident, EntryKind.MERGED, whole, actor, now, data={**named, "changes": changes})
    _record(
        incident, AuditAction.INCIDENT_MERGED, f"{text}:", actor, now, other=named, note=note, changes=changes
    )
    if note:
        enter(incident, EntryKind.NOTE, note, actor, now)


def note_deadline(
    *, incident: Incident, kind: EntryKind, text: str, data: dict[str, Any], actor: Actor, now: datetime
) -> None:
    """Enter, audit and announce that a clock of the locked incident is near its end or past it."""
    enter(incident, kind, text, actor, now, data=data)
    action = {
        EntryKind.DEADLINE_NEAR: AuditAction.INCIDENT_DEADLINE_NEAR,
        EntryKind.DEADLINE_MISSED: AuditAction.INCIDENT_DEADLINE_MISSED,
    }[kind]
    _record(incident, action, f"{text}:", actor, now, **data)
    _publish(incident, EventName.INCIDENT_DEADLINE, now, state=incident.state, **data)


def wind(incident: Incident) -> None:
    """Set the moments at which the incident's clocks need attention next; the caller saves them."""
    clocks = incident.clocks()
    waiting = (at for one in clocks for at, _, key in one.announcements() if key not in incident.announced)
    incident.next_announcement_at = min(waiting, default=None)
    incident.next_due_at = min((one.due_at for one in clocks if one.is_open and one.due_at), default=None)


def _open(tenant_id: UUID, occurrence: Occurrence, actor: Actor, now: datetime) -> Incident:
    incident = Incident(
        tenant_id=tenant_id,
        agent_id=occurrence.agent_id,
        agent_name=occurrence.agent_name,
        title=_TITLES[occurrence.cause],
        cause=occurrence.cause,
        state=_state_after(occurrence),
        contained_at=now if occurrence.is_contained else None,
        detected_at=occurrence.detected_at,
        opened_at=now,
        updated_at=now,
    )
    wind(incident)
    with sql.pipelined():
        sql.insert(incident)
        sql.insert(_touched_agent(incident, occurrence))
        if occurrence.certificate_id:
            sql.insert(_touched_certificate(incident, occurrence, occurrence.certificate_id))
        _enter_occurrence(incident, EntryKind.OPENED, occurrence, actor)
        _record(incident, AuditAction.INCIDENT_OPENED, "Opened", actor, now, **_named(occurrence))
        _publish(
            incident,
            EventName.INCIDENT_OPENED,
            now,
            cause=incident.cause,
            state=incident.state,
            severity=incident.severity,
            detected_at=incident.detected_at,
        )
    return incident


def _join(incident: Incident, occurrence: Occurrence, actor: Actor, now: datetime) -> None:
    touched = incident.agents.filter(agent_id=occurrence.agent_id)
    if not touched.exists():
        sql.insert(_touched_agent(incident, occurrence))
    elif occurrence.case_number:
        touched.update(case_number=occurrence.case_number)
    named = occurrence.certificate_id
    if named and not incident.certificates.filter(certificate_id=named).exists():
        sql.insert(_touched_certificate(incident, occurrence, named))
    _enter_occurrence(incident, EntryKind.JOINED, occurrence, actor)
    _record(incident, AuditAction.INCIDENT_JOINED, "Joined", actor, now, **_named(occurrence))
    if occurrence.detected_at < incident.detected_at:
        incident.detected_at = occurrence.detected_at
        wind(incident)
        incident.save(update_fields=["detected_at", *_CLOCKWORK])
    # That all of several agents are contained is for people to say.
    is_alone = not incident.agents.exclude(agent_id=occurrence.agent_id).exists()
    if is_alone or not occurrence.is_contained:
        _change(incident, {"state": _state_after(occurrence)}, actor, now)


def _touched_agent(incident: Incident, occurrence: Occurrence) -> TouchedAgent:
    return TouchedAgent(
        incident_id=incident.id,
        agent_id=occurrence.agent_id,
        agent_name=occurrence.agent_name,
        since=occurrence.detected_at,
        why=occurrence.text,
        case_number=occurrence.case_number,
    )


def _touched_certificate(
    incident: Incident, occurrence: Occurrence, certificate_id: UUID
) -> TouchedCertificate:
    return TouchedCertificate(
        incident_id=incident.id,
        agent_id=occurrence.agent_id,
        certificate_id=certificate_id,
        serial_number=occurrence.serial_number,
        since=occurrence.detected_at,
        why=occurrence.text,
    )


def _change(incident: Incident, changes: Mapping[str, Any], actor: Actor, now: datetime) -> None:
    changed = {name: value for name, value in changes.items() if getattr(incident, name) != value}
    if not changed:
        return
    if incident.merged_into is not None:
        raise IncidentMerged(
            f"The incident was merged into {incident.merged_into.reference}: change that one"
        )
    if incident.has_ended:
        raise IncidentClosed()
    before = {name: getattr(incident, name) for name in changed}
    touched = settle(incident, changed, now)
    check(incident, now)
    wind(incident)
    incident.save(update_fields=[*touched, *_CLOCKWORK])
    if changed.get("state") == IncidentState.CLOSED:
        incident.agents.update(is_current=False)
    after = {name: getattr(incident, name) for name in before}
    text, data = _difference(before, after)
    enter(incident, EntryKind.CHANGED, text, actor, now, data=data)
    _record(incident, AuditAction.INCIDENT_UPDATED, "Changed", actor, now, changes=data)


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return which fields differ: in words, and as plain values by name."""
    names = [name for name in before if before[name] != after[name]]
    text = "; ".join(
        f"{name.replace('_', ' ').capitalize()}: {_said(before[name])} to {_said(after[name])}"
        for name in names
    )
    return text, {name: {"before": _plain(before[name]), "after": _plain(after[name])} for name in names}


def _state_after(occurrence: Occurrence) -> IncidentState:
    return IncidentState.CONTAINED if occurrence.is_contained else IncidentState.OPEN


def _enter_occurrence(incident: Incident, kind: EntryKind, occurrence: Occurrence, actor: Actor) -> None:
    enter(
        incident,
        kind,
        occurrence.text,
        actor,
        occurrence.detected_at,
        event_id=occurrence.event_id,
        certificate_id=occurrence.certificate_id,
        serial_number=occurrence.serial_number,
        data={"cause": occurrence.cause},
    )


def enter(
    incident: Incident, kind: EntryKind, text: str, actor: Actor, at: datetime, /, **fields: Any
) -> None:
    """Add a row to the timeline; the caller audits what it tells."""
    entry = TimelineEntry(
        incident_id=incident.id,
        kind=kind,
        at=at,
        actor_kind=actor.kind,
        actor_id=actor.id[:255],
        text=text,
        **fields,
    )
    sql.insert(entry)


def _named(occurrence: Occurrence) -> dict[str, Any]:
    return {
        "cause": occurrence.cause,
        "event_id": str(occurrence.event_id) if occurrence.event_id else None,
        "serial_number": occurrence.serial_number or None,
    }


def _record(
    incident: Incident, action: AuditAction, verb: str, actor: Actor, now: datetime, **metadata: Any
) -> None:
    description = f"{verb} incident {incident.reference}"
    metadata = {"agent_id": str(incident.agent_id), "reference": incident.reference, **metadata}
    auditlog.record(
        of=incident, action=action, description=description, metadata=metadata, actor=actor, now=now
    )


def _publish(incident: Incident, name: EventName, now: datetime, /, **data: Any) -> None:
    named = {
        "incident_id": incident.id,
        "reference": incident.reference,
        "agent_id": incident.agent_id,
    }
    publish(tenant_id=incident.tenant_id, name=name, data={**named, **data}, now=now)


def _said(value: Any) -> str:
    if value is None or value == "":
        return "nothing"
    return f"{value:%Y-%m-%d %H:%M} UTC" if isinstance(value, datetime) else str(value).replace("_", " ")


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
