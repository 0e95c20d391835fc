"""The values of form fields, in words, from an incident's record; None where the record has none."""

from collections.abc import Callable
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


def value_of(key: str, record: IncidentRecord, template: NotificationTemplate) -> str | None:
    """Return the value of a field that the record or an officer's statement gives; None without one."""
    if key == "1.1":
        return template.label.removeprefix("DORA: ").capitalize()
    found = _VALUES.get(key)
    return found(record) if found else None


def moment(value: datetime | None) -> str | None:
    """Return a time as ISO 8601 in UTC, to the second."""
    return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if value else None


def _began(record: IncidentRecord) -> datetime:
    """Return the incident's beginning: the first high-risk event as its agent dates it, or the detection."""
    return min([*(event.occurred_at for event in record.events), record.incident.detected_at])


def _type_of_report(record: IncidentRecord) -> str:
    if record.incident.ai_act_reported_at:
        return f"Follow-up of the report sent at {moment(record.incident.ai_act_reported_at)}"
    return "Initial report, which may be incomplete (Article 73(5))"


def _term(record: IncidentRecord) -> str:
    (clock,) = (one for one in record.incident.clocks() if one.kind == ClockKind.AI_ACT_REPORT)
    if clock.due_at is None:
        return "No term runs: it was stated that this is no serious incident"
    return f"{moment(clock.due_at)}, from {clock.basis} at {moment(clock.started_at)} ({clock.provision})"


def _model(record: IncidentRecord) -> str | None:
    return ", ".join(filter(None, (record.agent.model, record.agent.version))) or None


def _identifiers(record: IncidentRecord) -> str:
    agents = [f"{agent.did}; agent {agent.id}" for agent in record.agents[:LISTED]]
    return "; ".join([*agents, *(f"certificate {row.serial_number}" for row in record.certificates[:LISTED])])


def _authority(record: IncidentRecord) -> str:
    actions = record.agent.permitted_actions
    scope = "none declared" if actions is None else ", ".join(actions) or "nothing is permitted"
    limits = record.agent.financial_scope
    money = "".join(f"; {name.replace('_', ' ')} {value}" for name, value in (limits or {}).items())
    return f"Permitted actions: {scope}{money}"


def _aware(record: IncidentRecord) -> str:
    aware = record.incident.aware_at
    return f"{moment(aware)}, as stated" if aware else f"{moment(record.incident.detected_at)}, the detection"


def _harm(record: IncidentRecord) -> str | None:
    harm = SeriousHarm(record.incident.serious_harm)
    return None if harm is SeriousHarm.UNDECIDED else str(harm.label)


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


def _reasons(record: IncidentRecord) -> str:
    names = dict.fromkeys(reason["name"] for event in record.events for reason in event.reasons)
    return "; ".join(in_words(name) for name in list(names)[:LISTED]) or "No event was scored as high-risk"


def _state(record: IncidentRecord) -> str:
    incident = record.incident
    since = {"contained": incident.contained_at, "closed": incident.closed_at}.get(incident.state)
    agent = f"agent {record.agent.status}"
    return f"{incident.state.capitalize()}{f' since {moment(since)}' if since else ''}; {agent}"


def _verdicts(record: IncidentRecord) -> str:
    confirmed, dismissed = record.verdicts["confirmed"], record.verdicts["dismissed"]
    waiting = len(record.events) - confirmed - dismissed
    of = f", of the first {MOST_EVENTS}" if len(record.events) >= MOST_EVENTS else ""
    return f"{confirmed} confirmed as attack, {dismissed} dismissed, {waiting} not reviewed{of}"


def _measures(record: IncidentRecord) -> str:
    done = [f"{moment(step.created_at)} {step.description or ''} ({step.actor_id})" for step in record.steps]
    return "; ".join(done[-LISTED:]) or "None on record"


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


def _logs(record: IncidentRecord) -> str:
    agents = ", ".join(str(agent.id) for agent in record.agents[:LISTED])
    whose = "their" if record.has_several else "its"
    return (
        f"Timeline of {counted(len(record.timeline), 'entry', 'entries')}; audit log of {record.log_size:,} "
        f"sealed entries, of which those about {record.incident.id}, {agents} and {whose} certificates "
        "concern the incident; events are kept with their scores and reasons"
    )


def _duration(record: IncidentRecord) -> str:
    """Return a duration as DORA's forms have it: days, hours and minutes as `DD:HH:MM`."""
    end = record.incident.closed_at or record.incident.contained_at
    note = "until it was contained" if end else "still going on"
    minutes = max(int(((end or record.gathered_at) - _began(record)).total_seconds() // 60), 0)
    return f"{minutes // 1440:02d}:{minutes // 60 % 24:02d}:{minutes % 60:02d} ({note})"


def _indicators(record: IncidentRecord) -> str:
    serials = ", ".join(row.serial_number for row in record.certificates[:LISTED]) or "none"
    sessions = ", ".join(sorted({event.session_id for event in record.events if event.session_id})[:LISTED])
    return (
        f"Certificate serial numbers: {serials}; model digest {record.agent.model_hash}; sessions: "
        f"{sessions or 'none reported'}; observed: {_reasons(record)}"
    )


def _recurring(record: IncidentRecord) -> str:
    count = len(record.earlier)
    whose = "these agents" if record.has_several else "this agent"
    return f"Yes: {counted(count, 'incident')} of {whose} in six months" if count else "No"


_VALUES: Final[dict[str, Callable[[IncidentRecord], str | None]]] = {
    "A1": _type_of_report,
    "A2": lambda record: moment(record.gathered_at),
    "A3": lambda record: record.incident.reference,
    "A4": _term,
    "C1": lambda record: record.agent.name,
    "C2": _model,
    "C3": lambda record: record.agent.model_hash,
    "C4": _identifiers,
    "C5": _authority,
    "C6": lambda record: moment(min((row.issued_at for row in record.certificates), default=None)),
    "D1": lambda record: moment(_began(record)),
    "D2": lambda record: moment(record.incident.detected_at),
    "D3": _aware,
    "D4": _harm,
    "D5": _description,
    "D6": _events,
    "D7": _reasons,
    "D8": _state,
    "E1": _verdicts,
    "F1": _measures,
    "F2": _speed,
    "G1": _logs,
    "G2": lambda record: (
        "; ".join(
            f"{one['name']} ({one['size']} octets, SHA-256 {one['sha256']})" for one in record.attachments
        )
        or "None"
    ),
    "2.1": lambda record: record.incident.reference,
    "2.2": lambda record: moment(record.incident.detected_at),
    "2.3": lambda record: moment(record.incident.classified_at),
    "2.4": _description,
    "2.7": lambda record: _DISCOVERY[IncidentCause(record.incident.cause)],
    "2.10": lambda record: f"{_speed(record)}. {_logs(record)}. Severity: {record.incident.severity}.",
    "3.2": lambda record: moment(_began(record)),
    "3.15": _duration,
    "3.29": lambda record: (
        f"AI agent {record.agent.name}: {_model(record) or 'model not declared'}, {record.agent.model_hash}; "
        f"{_identifiers(record)}"
    ),
    "3.33": lambda record: "Yes" if record.steps else "No",
    "3.34": _measures,
    "3.35": _indicators,
    "4.6": lambda record: f"{_state(record)}. {_measures(record)}",
    "4.15": _recurring,
    "4.16": lambda record: (
        "; ".join(moment(one.detected_at) or "" for one in record.earlier[:LISTED]) or "None"
    ),
}
