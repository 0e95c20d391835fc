"""Clocks, timelines and attachments as the console shows them; all of it escaped."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from auditlog.actors.names import actor_shown, names_of
from compliance.console.display import EMPTY, chip, code, moment, row_link, table, visible
from compliance.core.wording import to_the_minute
from incidents.duties.clocks import Clock, ClockState
from incidents.models import Incident, TimelineEntry
from incidents.vocabulary import EntryKind

SOON: Final = timedelta(hours=24)
SEVERITY_COLOURS: Final = {"low": "default", "medium": "warning", "high": "danger", "critical": "danger"}
STATE_COLOURS: Final = {"open": "danger", "contained": "warning", "closed": "default", "merged": "default"}
_CLOCK_COLOURS: Final = {
    ClockState.WAITING: "info",
    ClockState.DUE: "info",
    ClockState.MET: "success",
    ClockState.MISSED: "danger",
    ClockState.NOT_APPLICABLE: "default",
}
_ENTRY_COLOURS: Final = {
    EntryKind.OPENED: "danger",
    EntryKind.JOINED: "danger",
    EntryKind.DEADLINE_NEAR: "warning",
    EntryKind.DEADLINE_MISSED: "danger",
}
CERTIFICATES_SHOWN: Final = 200
ENTRIES_SHOWN: Final = 200


def next_clock(incident: Incident, now: datetime) -> SafeString | str:
    """Return what is left of the open clock that ends first, as a chip that a script keeps current."""
    running = [clock for clock in incident.clocks() if clock.is_open and clock.due_at]
    if not running:
        return EMPTY
    first = min(running, key=lambda clock: (clock.due_at or now, clock.kind))
    return format_html("{} {}", first.kind.label, countdown(first, now))


def countdown(clock: Clock, now: datetime) -> SafeString | str:
    """Return the time left of an open clock, or since its end (`2 h 5 min over`); nothing for another."""
    if clock.due_at is None or not clock.is_open:
        return ""
    left = clock.due_at - now
    colour = "danger" if left <= timedelta() else "warning" if left <= SOON else "info"
    words = f"{to_the_minute(left)} {'left' if left > timedelta() else 'over'}"
    return format_html('<span data-due="{}">{}</span>', clock.due_at.isoformat(), chip(words, colour))


def clocks_table(incident: Incident, now: datetime) -> SafeString:
    rows = []
    for clock in incident.clocks():
        state = clock.state_at(now)
        shown = chip(state.value.replace("_", " "), _CLOCK_COLOURS[state])
        since = format_html("{} {}", moment(clock.started_at), clock.basis) if clock.started_at else EMPTY
        standing = format_html("{} {}", shown, countdown(clock, now))
        due, met = moment(clock.due_at), moment(clock.met_at)
        rows.append((clock.kind.label, standing, since, due, met, clock.provision))
    return wide_table(("Report", "State", "Runs from", "Due", "Sent", "Where it stands"), rows)


def timeline_table(incident: Incident) -> SafeString | str:
    """Show the newest rows, the newest first."""
    found = TimelineEntry.objects.filter(incident_id=incident.id).order_by("-at", "-id")
    entries = list(found[:ENTRIES_SHOWN])
    names = names_of(entry.actor_id for entry in entries)
    rows = []
    for entry in entries:
        named = [
            ("event", "events_behaviorevent", entry.event_id),
            ("certificate", "certificates_certificate", entry.certificate_id),
        ]
        linked = ((row_link(label, page, key),) for label, page, key in named if key)
        rows.append(
            (
                moment(entry.at),
                chip(entry.kind.replace("_", " "), _ENTRY_COLOURS.get(EntryKind(entry.kind), "default")),
                format_html("{}{}", visible(entry.text), format_html_join("", " · {}", linked)),
                actor_shown(entry.actor_id, names.get(entry.actor_id), is_short=True),
            )
        )
    return wide_table(("At", "What", "Description", "By"), rows) if rows else EMPTY


def attachments_table(incident: Incident) -> SafeString | str:
    """Show the files of an incident and of those that were merged into it."""
    found = TimelineEntry.objects.of_incidents(Incident.objects.and_merged(incident.id)).attachments()
    files = [entry.data or {} for entry in found[:ENTRIES_SHOWN]]
    rows = [(visible(file["name"]), f"{file['size']:,} octets", code(file["sha256"])) for file in files]
    return wide_table(("File", "Size", "SHA-256"), rows) if rows else EMPTY


def agents_table(incident: Incident) -> SafeString:
    rows = [
        (
            row_link(visible(row.agent_name), "agents_agent", row.agent_id),
            moment(row.since),
            visible(row.why),
        )
        for row in incident.agents.all()
    ]
    return wide_table(("Agent", "Since", "Why"), rows)


def certificates_table(incident: Incident) -> SafeString | str:
    """Show the newest certificates, the newest first."""
    newest = incident.certificates.order_by("-since", "-id")[:CERTIFICATES_SHOWN]
    rows = [
        (
            row_link(row.serial_number, "certificates_certificate", row.certificate_id),
            moment(row.since),
            visible(row.why),
        )
        for row in newest
    ]
    return wide_table(("Certificate", "Since", "Why"), rows) if rows else EMPTY


def wide_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> SafeString:
    """Return a table with room in its cells, which scrolls where it is wider than the page."""
    shown = table(head, rows, classes="console-reasons console-roomy")
    return format_html('<div class="console-scroll" tabindex="0">{}</div>', shown)
