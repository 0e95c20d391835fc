"""The sections of the PDF: headings, tables, and the plots with their tables."""

from collections.abc import Iterable, Sequence
from typing import Any

from reportlab.lib.units import mm
from reportlab.platypus import CondPageBreak, Flowable, KeepTogether, Spacer

from compliance.core.json_values import Json
from compliance.reports.pdf import plots
from compliance.reports.pdf.checking import checking
from compliance.reports.pdf.parts import ITEM, Figure, Text, grid
from compliance.reports.pdf.styles import (
    BAND,
    BODY,
    CELL,
    CHIP,
    CONTROL,
    GRID,
    HEAD,
    HEADING,
    NOTE,
    ROOM_FOR_HEADING,
    RULE,
    STATE_COLORS,
    TITLE,
    WIDTH,
    safe,
    when,
)


def story(document: Json, title: str, *, digest: str, fingerprint: str) -> list[Flowable]:
    """Return all parts of the report, in order."""
    return [
        Text(safe(title), TITLE),
        Text(safe(document["notice"]), NOTE),
        Spacer(1, 4 * mm),
        _facts_table(document),
        *checking(digest, fingerprint),
        *_applications(document["regulation"]),
        *_controls(document["controls"]),
        *_rows(document["rows"]),
        *_archives(document["retention"]["archives"]),
        *_trend(document["trend"]),
        *_agents(document),
        *_certificates(document),
        *_high_risk(document),
        *_oversight(document),
    ]


def _facts_table(document: Json) -> Flowable:
    summary, kept = document["summary"], document["retention"]
    bands, modes = summary["events_by_band"], summary["enforcement"]
    rows = [
        ("Tenant", f"{document['tenant']['name']} ({document['tenant']['id']})"),
        ("Environment", document["environment"]),
        ("Period", f"{when(document['period_start'])} to {when(document['period_end'])}"),
        ("Covered", f"{when(document['covered_from'])} to {when(document['covered_until'])}"),
        (
            "Kept",
            f"events for {kept['event_retention_days']:,} days, "
            f"audit entries for {kept['audit_retention_days']:,} days",
        ),
        ("Generated", f"{when(document['generated_at'])}, report {document['report_id']}"),
        ("Agents", f"{summary['agents']:,}" + ("" if document["agent_ids"] is None else " (chosen)")),
        (
            "Mode",
            f"{modes['tenant']}; agents only observed, at least partly: {modes['agents_observed']:,}; "
            f"automatic stops recorded but not made: {modes['would_have_stopped']:,}",
        ),
        ("Events", f"{summary['events']:,}: {' / '.join(_band_cells(bands))} low / medium / high"),
        ("High-risk events", _reviews(summary["high_risk_reviews"])),
        ("Certificates", _certificate_counts(summary["certificates"])),
        ("Delegations", f"{summary['delegations']['issued']:,} issued"),
        ("Scorers", ", ".join(summary["model_versions"]) or "\u2013"),
    ]
    cells = [[Text(safe(name), HEAD), Text(safe(value), BODY)] for name, value in rows]
    style = [*GRID, ("BACKGROUND", (0, 0), (0, -1), BAND)]
    return grid(cells, scope="Row", colWidths=[30 * mm, WIDTH - 30 * mm], style=style)


def _reviews(reviews: Json) -> str:
    return (
        f"{reviews['confirmed']:,} confirmed, {reviews['dismissed']:,} dismissed, "
        f"{reviews['waiting']:,} without a review"
    )


def _certificate_counts(counts: Json) -> str:
    return (
        f"{counts['in_force_in_period']:,} in force at some time in the period, of these "
        f"{counts['revoked_in_period']:,} revoked in it and {counts['in_force_at_end']:,} in force at its end"
    )


def _applications(regulation: Json) -> Iterable[Flowable]:
    parts = regulation["applications"]
    rows = [[part["scope"], part["applies_from"], part["article"]] for part in parts]
    head = ["Part", "Applies from", "Source"]
    yield from _section(f"{regulation['reference']}: dates", head, rows, [5, 2, 4])


def _controls(controls: Sequence[Json]) -> Iterable[Flowable]:
    yield Text("Controls", HEADING)
    for control in controls:
        yield KeepTogether([_control(control), Spacer(1, 2.5 * mm)])


def _control(control: Json) -> Flowable:
    state = control["state"]
    title = f"<b>{safe(control['reference'])}</b> &nbsp; {safe(control['title'])}"
    findings = [Text(safe(control["summary"]), NOTE)]
    listed = [
        *(
            f"<b>+</b> Evidence: {safe(each['text'])} [{safe(each['rows'])}: {each['count']:,}]"
            for each in control["evidence"]
        ),
        *(f"<b>?</b> Asserted: {safe(text)}" for text in control["asserted"]),
        *(f"<b>\u2013</b> Gap: {safe(text)}" for text in control["gaps"]),
    ]
    findings += [Text(text, BODY, ITEM) for text in listed]
    chip = Text(safe(state.replace("_", " ")), CHIP)
    style = [
        ("BOX", (0, 0), (-1, -1), 0.5, RULE),
        ("BACKGROUND", (0, 0), (0, 0), BAND),
        ("BACKGROUND", (1, 0), (1, 0), STATE_COLORS[state]),
        ("SPAN", (0, 1), (1, 1)),
        ("VALIGN", (0, 0), (-1, 0), "MIDDLE"),
    ]
    cells: list[list[Any]] = [[Text(title, CONTROL), chip], [findings, ""]]
    return grid(cells, colWidths=[WIDTH - 34 * mm, 34 * mm], style=style)


def _archives(archives: Sequence[Json]) -> Iterable[Flowable]:
    rows = [
        [
            when(row["received_from"]),
            when(row["received_before"]),
            when(row["dropped_at"]) if row["dropped_at"] else "\u2013",
            "yes" if row["is_stored"] else "no",
            row["archive_sha256"] or "none",
        ]
        for row in archives
    ]
    head = ["Received from", "Before", "Dropped", "Stored now", "SHA-256 of the archive"]
    yield from _section("Events archived or dropped", head, rows, [2.4, 2.4, 2.4, 1.2, 5])


def _rows(sets: Json) -> Iterable[Flowable]:
    rows = [[name, each["definition"], each["list"] or "\u2013"] for name, each in sets.items()]
    yield from _section("What the claims count", ["Rows", "Definition", "Listed in"], rows, [3, 7, 3])


def _trend(trend: Json) -> Iterable[Flowable]:
    rows = [[when(point["from"])[:10], *_band_cells(point)] for point in trend["points"]]
    head = [trend["span"].capitalize(), "Low", "Medium", "High"]
    plot = plots.events_by_band(trend["points"])
    yield from _section("Events received, by risk band", head, rows, [3, 2, 2, 2], plot=plot)


def _agents(document: Json) -> Iterable[Flowable]:
    rows = [
        [
            f"{agent['name']} ({agent['id']})",
            " ".join(filter(None, (agent["model"], agent["version"]))) or "\u2013",
            agent["status"] + ("" if agent["is_certified"] else ", no certificate"),
            agent["enforcement"],
            f"{agent['risk_score']:.2f}",
            " / ".join(_band_cells(agent["events_by_band"])),
        ]
        for agent in document["agents"]
    ]
    head = ["Agent", "Model", "Status", "Mode", "Risk", "Low / medium / high"]
    title = _of("Agents", len(rows), document["summary"]["agents"])
    plot = plots.riskiest(document["agents"])
    yield from _section(title, head, rows, [5, 3.2, 2.6, 1.6, 1.2, 2.6], plot=plot)


def _certificates(document: Json) -> Iterable[Flowable]:
    rows = [
        [
            item["serial_number"],
            f"{item['agent_name']} ({item['agent_id']})",
            item["status"],
            when(item["issued_at"]),
            when(item["revoked_at"] or item["expires_at"]),
            item["revocation_reason"] or "\u2013",
        ]
        for item in document["certificates"]
    ]
    head = ["Serial number", "Agent", "Status", "Issued", "Revoked or expires", "Reason"]
    title = _of("Certificates", len(rows), document["summary"]["certificates"]["in_force_in_period"])
    yield from _section(title, head, rows, [3.4, 4, 1.5, 2.2, 2.2, 3])


def _high_risk(document: Json) -> Iterable[Flowable]:
    rows = [
        [
            when(event["received_at"]),
            event["action_type"],
            f"{event['risk_score']:.2f}",
            ", ".join(event["reasons"]),
            _review(event),
            f"{event['agent_name']} ({event['agent_id']})",
        ]
        for event in document["high_risk_events"]
    ]
    title = _of("High-risk events", len(rows), document["summary"]["events_by_band"]["high"])
    head = ["Received", "Action", "Score", "Reasons", "Review", "Agent"]
    yield from _section(title, head, rows, [2.2, 3, 1.1, 3.2, 2.4, 4])


def _oversight(document: Json) -> Iterable[Flowable]:
    rows = [
        [when(act["at"]), act["what"], f"{act['actor_type']} {act['actor_id']}", act["description"]]
        for act in document["oversight"]
    ]
    yield from _section(
        "Interventions and modes", ["At", "What", "Who", "Description"], rows, [2.4, 2.6, 4, 5]
    )


def _section(
    title: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    weights: Sequence[float],
    plot: Iterable[Figure] = (),
) -> Iterable[Flowable]:
    """Yield a heading, a plot and a table, whose head repeats on each page; a note if there are no rows."""
    drawn = list(plot)
    yield CondPageBreak(ROOM_FOR_HEADING + sum(flowable.wrap(WIDTH, 0)[1] for flowable in drawn))
    yield Text(safe(title), HEADING)
    yield from drawn
    if not rows:
        yield Text("None on record.", NOTE)
        return
    cells = [[Text(safe(text), HEAD) for text in head]]
    cells += [[Text(safe(text), CELL) for text in row] for row in rows]
    widths = [WIDTH * weight / sum(weights) for weight in weights]
    style = [*GRID, ("BACKGROUND", (0, 0), (-1, 0), BAND)]
    yield grid(cells, scope="Column", colWidths=widths, repeatRows=1, style=style)


def _band_cells(bands: Json) -> list[str]:
    return [f"{bands[band]:,}" for band in ("low", "medium", "high")]


def _of(title: str, listed: int, total: int) -> str:
    return title if listed == total else f"{title} ({listed:,} of {total:,} listed)"


def _review(event: Json) -> str:
    if event["verdict"] is None:
        return "none"
    return f"{event['verdict']}, first {when(event['first_review_at'])}"
