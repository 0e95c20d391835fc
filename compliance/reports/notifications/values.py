"""The values of form fields, in words, from an incident's record; None where the record has none."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from compliance.core.wording import counted
from compliance.incidents.duties.clocks import ClockKind
from compliance.incidents.vocabulary import IncidentCause, NotificationTemplate, SeriousHarm
from compliance.reports.notifications.record import MOST_EVENTS, IncidentRecord
from events.risk.words import in_words

LISTED: Final = 20
Value = Callable[[IncidentRecord, NotificationTemplate], str | None]
_DISCOVERY: Final = {
    IncidentCause.THRESHOLD: "Monitoring systems: automatic scoring of the agent's events",
    IncidentCause.REVOCATION: "Staff: the certificate was revoked by hand or by an API key",
    IncidentCause.VERDICT: "Staff: an officer confirmed a high-risk event of the monitoring",
}
_SUBMISSION: Final = {
    NotificationTemplate.DORA_INITIAL: "Initial notification",
    NotificationTemplate.DORA_INTERMEDIATE: "Intermediate report",
    NotificationTemplate.DORA_FINAL: "Final report",
}


def value_of(key: str, record: IncidentRecord, template: NotificationTemplate) -> str | None:
    """Return the value of a field that the record or an officer's statement gives; None without one."""
    found = _VALUES.get(key)
    return found(record, template) if found else None


def moment(value: datetime | None) -> str | None:
    """Return a time as ISO 8601 in UTC, to the second."""
    return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if value else None


def span(value: timedelta) -> str:
    """Return a duration as DORA's forms have it: days, hours and minutes as `DD:HH:MM`."""
    minutes = max(int(value.total_seconds() // 60), 0)
    return f"{minutes // 1440:02d}:{minutes // 60 % 24:02d}:{minutes % 60:02d}"


def _began(record: IncidentRecord) -> datetime:
    """When the incident began: the first high-risk event as its agent dates it, or the detection."""
    first = min((event.occurred_at for event in record.events), default=record.incident.detected_at)
    return min(first, record.incident.detected_at)


def _type_of_report(record: IncidentRecord, _: NotificationTemplate) -> str:
    if record.incident.ai_act_reported_at:
        return f"Follow-up of the report sent at {moment(record.incident.ai_act_reported_at)}"
    return "Initial report, which may be incomplete (Article 73(5))"


def _term(record: IncidentRecord, _: NotificationTemplate) -> str:
    (clock,) = (one for one in record.incident.clocks() if one.kind == ClockKind.AI_ACT_REPORT)
    if clock.due_at is None:
        return "No term runs: it was stated that this is no serious incident"
    return f"{moment(clock.due_at)}, from {clock.basis} at {moment(clock.started_at)} ({clock.provision})"


def _model(record: IncidentRecord, _: NotificationTemplate) -> str | None:
    return ", ".join(filter(None, (record.agent.model, record.agent.version))) or None


def _identifiers(record: IncidentRecord, _: NotificationTemplate) -> str:
    serials = [f"certificate {row.serial_number}" for row in record.certificates[:LISTED]]
    agents = (record.agent, *record.others[: LISTED - 1])
    return "; ".join([*(f"{agent.did}; agent {agent.id}" for agent in agents), *serials])


def _authority(record: IncidentRecord, _: NotificationTemplate) -> str:
    actions = record.agent.permitted_actions
    scope = "none declared" if actions is None else ", ".join(actions) or "nothing is permitted"
    limits = record.agent.financial_scope
    money = "".join(f"; {name.replace('_', ' ')} {value}" for name, value in (limits or {}).items())
    return f"Permitted actions: {scope}{money}"


def _in_service(record: IncidentRecord, _: NotificationTemplate) -> str | None:
    return moment(min((row.issued_at for row in record.certificates), default=None))


def _aware(record: IncidentRecord, _: NotificationTemplate) -> str:
    aware = record.incident.aware_at
    return f"{moment(aware)}, as stated" if aware else f"{moment(record.incident.detected_at)}, the detection"


def _harm(record: IncidentRecord, _: NotificationTemplate) -> str | None:
    harm = SeriousHarm(record.incident.serious_harm)
    return None if harm is SeriousHarm.UNDECIDED else str(harm.label)


def _high_risk(record: IncidentRecord) -> str:
    """Return the number of high-risk events; the record holds no more than the first 200."""
    if len(record.events) < MOST_EVENTS:
        return counted(len(record.events), "high-risk event")
    return f"{MOST_EVENTS} or more high-risk events, told here up to number {MOST_EVENTS},"


def _description(record: IncidentRecord, _: NotificationTemplate) -> str:
    incident, events = record.incident, record.events
    opened = next((entry.text for entry in record.timeline), incident.title)
    text = f"The AI agent {incident.agent_name} ({record.agent.did}): {opened}."
    if record.others:
        belong = "belongs" if len(record.others) == 1 else "belong"
        text += f" {counted(len(record.others), 'further agent')} {belong} to the incident."
    if events:
        text += (
            f" {'They' if record.others else 'It'} reported {_high_risk(record)} between "
            f"{moment(events[0].received_at)} and {moment(events[-1].received_at)}."
        )
    if record.revoked_at:
        whose = "The last" if record.others else "Its"
        text += f" {whose} certificate was revoked at {moment(record.revoked_at)}."
    return f"{text} At the time of this version the agent is {record.agent.status}."


def _events(record: IncidentRecord, _: NotificationTemplate) -> str:
    if not record.events:
        return "No high-risk event is on record; the incident began with a person's act"
    first, last = record.events[0], record.events[-1]
    actions = ", ".join(sorted({event.action_type for event in record.events}))
    return (
        f"{_high_risk(record)} ({actions}); first {moment(first.received_at)} "
        f"({first.id}), last {moment(last.received_at)} ({last.id})"
    )


def _reasons(record: IncidentRecord, _: NotificationTemplate) -> str:
    names = dict.fromkeys(reason["name"] for event in record.events for reason in event.reasons)
    return "; ".join(in_words(name) for name in list(names)[:LISTED]) or "No event was scored as high-risk"


def _state(record: IncidentRecord, _: NotificationTemplate) -> str:
    incident = record.incident
    since = {"contained": incident.contained_at, "closed": incident.closed_at}.get(incident.state)
    agent = f"agent {record.agent.status}"
    return f"{incident.state.capitalize()}{f' since {moment(since)}' if since else ''}; {agent}"


def _verdicts(record: IncidentRecord, _: NotificationTemplate) -> str:
    confirmed, dismissed = record.verdicts["confirmed"], record.verdicts["dismissed"]
    waiting = len(record.events) - confirmed - dismissed
    of = f", of the first {MOST_EVENTS}" if len(record.events) >= MOST_EVENTS else ""
    return f"{confirmed} confirmed as attack, {dismissed} dismissed, {waiting} not reviewed{of}"


def _measures(record: IncidentRecord, _: NotificationTemplate) -> str:
    done = [f"{moment(step.at)} {step.description} ({step.actor_id})" for step in record.steps[-LISTED:]]
    return "; ".join(done) or "None on record"


def _speed(record: IncidentRecord, _: NotificationTemplate) -> str:
    revoked = record.revoked_at
    if revoked is None:
        return "No certificate was revoked" if record.others else "The certificate was not revoked"
    from_detection = max((revoked - record.incident.detected_at).total_seconds(), 0)
    text = f"Revoked {from_detection:.1f} s after the detection"
    if record.events:
        from_first = max((revoked - record.events[0].received_at).total_seconds(), 0)
        text += f", {from_first:.1f} s after the first high-risk event"
    return text


def _logs(record: IncidentRecord, _: NotificationTemplate) -> str:
    agents = ", ".join(str(agent.id) for agent in (record.agent, *record.others[: LISTED - 1]))
    whose = "their" if record.others else "its"
    return (
        f"Timeline of {counted(len(record.timeline), 'entry', 'entries')}; audit log of {record.log_size:,} "
        f"sealed entries, of which those about {record.incident.id}, {agents} and {whose} certificates "
        "concern the incident; events are kept with their scores and reasons"
    )


def _attachments(record: IncidentRecord, _: NotificationTemplate) -> str:
    files = [
        f"{file['name']} ({file['size']} octets, SHA-256 {file['sha256']})" for file in record.attachments
    ]
    return "; ".join(files) or "None"


def _duration(record: IncidentRecord, _: NotificationTemplate) -> str:
    incident = record.incident
    end = incident.closed_at or incident.contained_at
    note = "until it was contained" if end else "still going on"
    return f"{span((end or record.gathered_at) - _began(record))} ({note})"


def _components(record: IncidentRecord, template: NotificationTemplate) -> str:
    model = _model(record, template) or "model not declared"
    return (
        f"AI agent {record.agent.name}: {model}, {record.agent.model_hash}; {_identifiers(record, template)}"
    )


def _indicators(record: IncidentRecord, template: NotificationTemplate) -> str:
    serials = ", ".join(row.serial_number for row in record.certificates[:LISTED]) or "none"
    sessions = ", ".join(sorted({event.session_id for event in record.events if event.session_id})[:LISTED])
    return (
        f"Certificate serial numbers: {serials}; model digest {record.agent.model_hash}; sessions: "
        f"{sessions or 'none reported'}; observed: {_reasons(record, template)}"
    )


def _other(record: IncidentRecord, template: NotificationTemplate) -> str:
    return f"{_speed(record, template)}. {_logs(record, template)}. Severity: {record.incident.severity}."


def _resolution(record: IncidentRecord, template: NotificationTemplate) -> str:
    return f"{_state(record, template)}. {_measures(record, template)}"


def _recurring(record: IncidentRecord, _: NotificationTemplate) -> str:
    count = len(record.earlier)
    whose = "these agents" if record.others else "this agent"
    return f"Yes: {counted(count, 'incident')} of {whose} in six months" if count else "No"


def _recurrences(record: IncidentRecord, _: NotificationTemplate) -> str:
    return "; ".join(moment(one.detected_at) or "" for one in record.earlier[:LISTED]) or "None"


_VALUES: Final[dict[str, Value]] = {
    "A1": _type_of_report,
    "A2": lambda record, _: moment(record.gathered_at),
    "A3": lambda record, _: record.incident.reference,
    "A4": _term,
    "C1": lambda record, _: record.agent.name,
    "C2": _model,
    "C3": lambda record, _: record.agent.model_hash,
    "C4": _identifiers,
    "C5": _authority,
    "C6": _in_service,
    "D1": lambda record, _: moment(_began(record)),
    "D2": lambda record, _: moment(record.incident.detected_at),
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
    "G2": _attachments,
    "1.1": lambda _, template: _SUBMISSION[template],
    "2.1": lambda record, _: record.incident.reference,
    "2.2": lambda record, _: moment(record.incident.detected_at),
    "2.3": lambda record, _: moment(record.incident.classified_at),
    "2.4": _description,
    "2.7": lambda record, _: _DISCOVERY[IncidentCause(record.incident.cause)],
    "2.10": _other,
    "3.2": lambda record, _: moment(_began(record)),
    "3.15": _duration,
    "3.29": _components,
    "3.33": lambda record, _: "Yes" if record.steps else "No",
    "3.34": _measures,
    "3.35": _indicators,
    "4.6": _resolution,
    "4.15": _recurring,
    "4.16": _recurrences,
}
