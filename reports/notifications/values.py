"""The values of form fields, in words, from an incident's record; None where the record has none."""

from datetime import UTC, datetime
from typing import Final

from compliance.core.wording import counted
from events.risk.scoring.model import in_words
from incidents.duties.clocks import ClockKind
from incidents.vocabulary import IncidentCause, SeriousHarm
from reports.notifications.record import MOST_EVENTS, IncidentRecord
from reports.vocabulary import NotificationTemplate

LISTED: Final = 20
_DISCOVERY: Final = {
    IncidentCause.THRESHOLD: "Monitoring systems: automatic scoring of the agent's events",
    IncidentCause.REVOCATION: "Staff: the certificate was revoked by hand or by an API key",
    IncidentCause.VERDICT: "Staff: an officer confirmed a high-risk event of the monitoring",
}


def values_of(record: IncidentRecord, template: NotificationTemplate) -> dict[str, str | None]:
    """Return the fields that the record or an officer's statement gives, by their keys in `forms.toml`."""
    incident, agent, events = record.incident, record.agent, record.events
    shown = record.certificates[:LISTED]
    # The incident began with the first high-risk event as its agent dates it, or with the detection.
    began = min([*(event.occurred_at for event in events), incident.detected_at])
    model = ", ".join(filter(None, (agent.model, agent.version))) or None
    agents = [f"{one.did}; agent {one.id}" for one in record.agents[:LISTED]]
    identifiers = "; ".join([*agents, *(f"certificate {row.serial_number}" for row in shown)])
    description, speed, logs, state = _description(record), _speed(record), _logs(record), _state(record)
    names = dict.fromkeys(reason["name"] for event in events for reason in event.reasons)
    reasons = "; ".join(map(in_words, list(names)[:LISTED])) or "No event was scored as high-risk"
    done = [f"{moment(step.created_at)} {step.description or ''} ({step.actor_id})" for step in record.steps]
    measures = "; ".join(done[-LISTED:]) or "None on record"
    harm = SeriousHarm(incident.serious_harm)
    serials = ", ".join(row.serial_number for row in shown) or "none"
    sessions = ", ".join(sorted({event.session_id for event in events if event.session_id})[:LISTED])
    earlier, whose = len(record.earlier), "these agents" if record.has_several else "this agent"
    type_of_report = "Initial report, which may be incomplete (Article 73(5))"
    if incident.ai_act_reported_at:
        type_of_report = f"Follow-up of the report sent at {moment(incident.ai_act_reported_at)}"
    return {
        "A1": type_of_report,
        "A2": moment(record.gathered_at),
        "A3": incident.reference,
        "A4": _term(record),
        "C1": agent.name,
        "C2": model,
        "C3": agent.model_hash,
        "C4": identifiers,
        "C5": _authority(record),
        "C6": moment(min((row.issued_at for row in record.certificates), default=None)),
        "D1": moment(began),
        "D2": moment(incident.detected_at),
        "D3": f"{moment(incident.aware_at)}, as stated"
        if incident.aware_at
        else f"{moment(incident.detected_at)}, the detection",
        "D4": None if harm is SeriousHarm.UNDECIDED else str(harm.label),
        "D5": description,
        "D6": _events(record),
        "D7": reasons,
        "D8": state,
        "E1": _verdicts(record),
        "F1": measures,
        "F2": speed,
        "G1": logs,
        "G2": "; ".join(
            f"{one['name']} ({one['size']} octets, SHA-256 {one['sha256']})" for one in record.attachments
        )
        or "None",
        "1.1": template.label.removeprefix("DORA: ").capitalize(),
        "2.1": incident.reference,
        "2.2": moment(incident.detected_at),
        "2.3": moment(incident.classified_at),
        "2.4": description,
        "2.7": _DISCOVERY[IncidentCause(incident.cause)],
        "2.10": f"{speed}. {logs}. Severity: {incident.severity}.",
        "3.2": moment(began),
        "3.15": _duration(record, began),
        "3.29": f"AI agent {agent.name}: {model or 'model not declared'}, {agent.model_hash}; {identifiers}",
        "3.33": "Yes" if record.steps else "No",
        "3.34": measures,
        "3.35": f"Certificate serial numbers: {serials}; model digest {agent.model_hash}; sessions: "
        f"{sessions or 'none reported'}; observed: {reasons}",
        "4.6": f"{state}. {measures}",
        "4.15": f"Yes: {counted(earlier, 'incident')} of {whose} in six months" if earlier else "No",
        "4.16": "; ".join(moment(one.detected_at) or "" for one in record.earlier[:LISTED]) or "None",
    }


def moment(value: datetime | None) -> str | None:
    """Return a time as ISO 8601 in UTC, to the second."""
    return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if value else None


def _term(record: IncidentRecord) -> str:
    """Return until when the AI Act's report is due, since when and by what provision."""
    (clock,) = (one for one in record.incident.clocks() if one.kind == ClockKind.AI_ACT_REPORT)
    if clock.due_at is None:
        return "No term runs: it was stated that this is no serious incident"
    return f"{moment(clock.due_at)}, from {clock.basis} at {moment(clock.started_at)} ({clock.provision})"


def _authority(record: IncidentRecord) -> str:
    actions, limits = record.agent.permitted_actions, record.agent.financial_scope or {}
    permitted = "none declared" if actions is None else ", ".join(actions) or "nothing is permitted"
    money = "".join(f"; {name.replace('_', ' ')} {value}" for name, value in limits.items())
    return f"Permitted actions: {permitted}{money}"


def _state(record: IncidentRecord) -> str:
    incident = record.incident
    moved = {"contained": incident.contained_at, "closed": incident.closed_at}.get(incident.state)
    since = f" since {moment(moved)}" if moved else ""
    return f"{incident.state.capitalize()}{since}; agent {record.agent.status}"


def _verdicts(record: IncidentRecord) -> str:
    confirmed, dismissed = record.verdicts["confirmed"], record.verdicts["dismissed"]
    waiting = len(record.events) - confirmed - dismissed
    of = f", of the first {MOST_EVENTS}" if len(record.events) >= MOST_EVENTS else ""
    return f"{confirmed} confirmed as attack, {dismissed} dismissed, {waiting} not reviewed{of}"


def _logs(record: IncidentRecord) -> str:
    agents = ", ".join(str(agent.id) for agent in record.agents[:LISTED])
    whose = "their" if record.has_several else "its"
    return (
        f"Timeline of {counted(len(record.timeline), 'entry', 'entries')}; audit log of {record.log_size:,} "
        f"sealed entries, of which those about {record.incident.id}, {agents} and {whose} certificates "
        "concern the incident; events are kept with their scores and reasons"
    )


def _duration(record: IncidentRecord, began: datetime) -> str:
    """Return a duration as DORA's forms have it: days, hours and minutes as `DD:HH:MM`."""
    end = record.incident.closed_at or record.incident.contained_at
    minutes = max(int(((end or record.gathered_at) - began).total_seconds() // 60), 0)
    note = "until it was contained" if end else "still going on"
    return f"{minutes // 1440:02d}:{minutes // 60 % 24:02d}:{minutes % 60:02d} ({note})"


def _high_risk(record: IncidentRecord) -> str:
    """Return the number of high-risk events; the record holds no more than the first 200."""
    if len(record.events) < MOST_EVENTS:
        return counted(len(record.events), "high-risk event")
    return f"{MOST_EVENTS} or more high-risk events, told here up to number {MOST_EVENTS},"


def _description(record: IncidentRecord) -> str:
    incident, events = record.incident, record.events
    opened = next((entry.text for entry in record.timeline), incident.title)
    text = f"The AI agent {incident.agent_name} ({record.agent.did}): {opened}."
    if record.has_several:
        further = len(record.agents) - 1
        belong = "belongs" if further == 1 else "belong"
        text += f" {counted(further, 'further agent')} {belong} to the incident."
    if events:
        text += (
            f" {'They' if record.has_several else 'It'} reported {_high_risk(record)} between "
            f"{moment(events[0].received_at)} and {moment(events[-1].received_at)}."
        )
    if record.revoked_at:
        whose = "The last" if record.has_several else "Its"
        text += f" {whose} certificate was revoked at {moment(record.revoked_at)}."
    return f"{text} At the time of this version the agent is {record.agent.status}."


def _events(record: IncidentRecord) -> str:
    if not record.events:
        return "No high-risk event is on record; the incident began with a person's act"
    first, last = record.events[0], record.events[-1]
    actions = ", ".join(sorted({event.action_type for event in record.events}))
    return (
        f"{_high_risk(record)} ({actions}); first {moment(first.received_at)} "
        f"({first.id}), last {moment(last.received_at)} ({last.id})"
    )


def _speed(record: IncidentRecord) -> str:
    revoked = record.revoked_at
    if revoked is None:
        return "No certificate was revoked" if record.has_several else "The certificate was not revoked"
    from_detection = max((revoked - record.incident.detected_at).total_seconds(), 0)
    text = f"Revoked {from_detection:.1f} s after the detection"
    if record.events:
        from_first = max((revoked - record.events[0].received_at).total_seconds(), 0)
        text += f", {from_first:.1f} s after the first high-risk event"
    return text
