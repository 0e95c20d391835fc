"""A report's document as PDF: the text of its sections, in the blocks that `page.typ` draws."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from compliance.core.json_values import Json
from compliance.core.wording import counted
from reports.pdf.drawing import draw
from reports.periods import in_words

RISKIEST = 10
NONE = "\N{EN DASH}"
SIGNATURE = "openssl pkeyutl -verify -pubin -inkey key.pem -rawin -in manifest.json -sigfile manifest.sig"
DIGESTS = "openssl dgst -r -sha256 report.json report.pdf evidence/*.jsonl"
FINGERPRINT = "openssl pkey -pubin -in key.pem -outform DER | openssl dgst -r -sha256"
OF_VKEY = (
    r"(printf '0*0\5\6\3+ep\3!\0'; echo VKEY | cut -d+ -f3- | base64 -d | tail -c 32)"
    " | openssl dgst -r -sha256"
)
KEYS, KEYS_OF_TEST = "/v1/audit-log/keys", "/v1/audit-log/test/keys"


def render(document: Json, *, digest: str, fingerprint: str) -> bytes:
    """Return the PDF; `digest` is that of the JSON, `fingerprint` of the key that signs the manifest."""
    regulation = document["regulation"]
    blocks = [
        {"kind": "note", "text": document["notice"]},
        _facts(document),
        *_checking(digest, fingerprint),
        *_section(
            f"{regulation['reference']}: dates",
            {"Part": 5, "Applies from": 2, "Source": 4},
            [[part["scope"], part["applies_from"], part["article"]] for part in regulation["applications"]],
        ),
        {"kind": "heading", "text": "Controls"},
        *map(_control, document["controls"]),
        *_section(
            "What the claims count",
            {"Rows": 3, "Definition": 7, "Listed in": 3},
            [[name, each["definition"], each["list"] or NONE] for name, each in document["rows"].items()],
        ),
        *_archives(document["retention"]["archives"]),
        *_trend(document["trend"]),
        *_agents(document),
        *_certificates(document),
        *_high_risk(document),
        *_section(
            "Interventions and modes",
            {"At": 2.4, "What": 2.6, "Who": 4, "Description": 5},
            [
                [_when(act["at"]), act["what"], f"{act['actor_type']} {act['actor_id']}", act["description"]]
                for act in document["oversight"]
            ],
        ),
    ]
    title = f"{regulation['name']} evidence report"
    made_at = datetime.fromisoformat(document["generated_at"])
    return draw(blocks, title=title, subject=document["report_id"], digest=digest, made_at=made_at)


def _facts(document: Json) -> Json:
    summary, kept = document["summary"], document["retention"]
    modes, reviews, delegations = (
        summary[name] for name in ("enforcement", "high_risk_reviews", "delegations")
    )
    start, end = (datetime.fromisoformat(document[name]) for name in ("period_start", "period_end"))
    incidents = ", ".join(f"{number:,} {name}" for name, number in sorted(summary["incidents"].items()))
    erased = counted(summary["erased"]["entries"], "audit entry", "audit entries")
    rows = {
        "Tenant": f"{document['tenant']['name']} ({document['tenant']['id']})",
        "Environment": document["environment"],
        "Period": f"{in_words(start, end)} (UTC; a day that ends it is included)",
        "Covered": f"{_when(document['covered_from'])} to {_when(document['covered_until'])}",
        "Kept": (
            f"events for {kept['event_retention_days']:,} days, "
            f"audit entries for {kept['audit_retention_days']:,} days"
        ),
        "Generated": f"{_when(document['generated_at'])}, report {document['report_id']}",
        "Agents": f"{summary['agents']:,}" + ("" if document["agent_ids"] is None else " (chosen)"),
        "Mode": (
            f"{modes['tenant']}; agents only observed, at least partly: {modes['agents_observed']:,}; "
            f"automatic stops recorded but not made: {modes['would_have_stopped']:,}"
        ),
        "Events": (
            f"{summary['events']:,}: {' / '.join(_bands(summary['events_by_band']))} low / medium / high"
        ),
        "High-risk events": (
            f"{reviews['confirmed']:,} confirmed, {reviews['dismissed']:,} dismissed, "
            f"{reviews['waiting']:,} without a review"
        ),
        "Certificates": _certificate_counts(summary),
        "Incidents opened": incidents or "none",
        "Delegations": (
            f"{delegations['issued']:,} issued; their root: {delegations['root_verified']:,} a verified "
            f"person, {delegations['root_asserted']:,} a person by the caller's word, "
            f"{delegations['root_nobody']:,} nobody"
        ),
        "Erased": f"{counted(summary['erased']['parts'], 'part')} of {erased} in the period",
        "Scorers": ", ".join(summary["model_versions"]) or NONE,
    }
    return {"kind": "facts", "rows": list(rows.items())}


def _certificate_counts(summary: Json) -> str:
    counts, entries = summary["certificates"], summary["audit_entries"]
    made = [sum(entries.get(f"certificate.{name}", {}).values()) for name in ("revoked", "held", "released")]
    acts = (counted(made[0], "revocation"), counted(made[1], "hold"), f"{counted(made[2], 'hold')} lifted")
    return (
        f"{counts['in_force_in_period']:,} in force at some time in the period; at its end "
        f"{counts['in_force_at_end']:,} in force, {counts['on_hold_at_end']:,} on hold, "
        f"{counts['revoked_at_end']:,} revoked for good. Made in the period: {', '.join(acts)}"
    )


def _checking(digest: str, fingerprint: str) -> list[Json]:
    """Return the commands, with the digest of the JSON and the fingerprint of the key."""
    bundle = (
        "The bundle (report.json, report.pdf, the lists of rows, manifest.json, manifest.sig, key.pem) is "
        "checked with OpenSSL 3, in the folder where it is unpacked. The first command must print "
        "\u201cSignature Verified Successfully\u201d, the second the digests that manifest.json states, the "
        "third the fingerprint of the audit log's key:"
    )
    keys = (
        "Compare the fingerprint with that of a key which did not come with this file: the service publishes "
        f"its keys at {KEYS} (test: {KEYS_OF_TEST}), audit_key_list prints them for the operator, and "
        "witnesses keep them. The last command prints the fingerprint of such a key, VKEY:"
    )
    return [
        {"kind": "heading", "text": "Check this report"},
        {"kind": "text", "text": bundle},
        *({"kind": "command", "text": command} for command in (SIGNATURE, DIGESTS, FINGERPRINT)),
        {"kind": "text", "text": keys},
        {"kind": "command", "text": OF_VKEY},
        {"kind": "text", "text": f"Fingerprint: {fingerprint}"},
        {"kind": "text", "text": f"report.json: {digest}"},
    ]


def _control(control: Json) -> Json:
    findings = [
        *(f"Evidence: {each['text']} [{each['rows']}: {each['count']:,}]" for each in control["evidence"]),
        *(f"Asserted: {text}" for text in control["asserted"]),
        *(f"Gap: {text}" for text in control["gaps"]),
    ]
    title = f"{control['reference']} {control['title']}"
    return {
        "kind": "control",
        "title": title,
        "state": control["state"],
        "summary": control["summary"],
        "findings": findings,
    }


def _archives(archives: Sequence[Json]) -> list[Json]:
    rows = [
        [
            _when(row["received_from"]),
            _when(row["received_before"]),
            _when(row["dropped_at"]) if row["dropped_at"] else NONE,
            "yes" if row["is_stored"] else "no",
            row["archive_sha256"] or "none",
        ]
        for row in archives
    ]
    spans = {"Received from": 2.4, "Before": 2.4, "Dropped": 2.4}
    head = {**spans, "Stored now": 1.2, "SHA-256 of the archive": 5}
    return _section("Events archived or dropped", head, rows)


def _trend(trend: Json) -> list[Json]:
    points = trend["points"]
    rows = [[point["from"][:10], *_bands(point)] for point in points]
    alt = f"Stacked columns of the events received in {len(points)} steps, by risk band."
    plot = {"drawn": "stacked", "alt": alt, "points": points}
    head = {trend["span"].capitalize(): 3, "Low": 2, "Medium": 2, "High": 2}
    return _section("Events received, by risk band", head, rows, plot)


def _agents(document: Json) -> list[Json]:
    agents = document["agents"]
    rows = [
        [
            f"{agent['name']} ({agent['id']})",
            " ".join(filter(None, (agent["model"], agent["version"]))) or NONE,
            agent["status"] + ("" if agent["is_certified"] else ", no certificate"),
            agent["enforcement"],
            f"{agent['risk_score']:.2f}",
            " / ".join(_bands(agent["events_by_band"])),
        ]
        for agent in agents
    ]
    head = {"Agent": 5, "Model": 3.2, "Status": 2.6, "Mode": 1.6, "Risk": 1.2, "Low / medium / high": 2.6}
    bars = [(agent["name"][:30], agent["risk_score"]) for agent in agents[:RISKIEST]]
    alt = f"Bars of the risk scores of the {len(bars)} riskiest agents."
    title = _of("Agents", len(rows), document["summary"]["agents"])
    return _section(title, head, rows, {"drawn": "bars", "alt": alt, "bars": bars})


def _certificates(document: Json) -> list[Json]:
    rows = [
        [
            item["serial_number"],
            f"{item['agent_name']} ({item['agent_id']})",
            item["status"],
            _when(item["issued_at"]),
            _when(item["revoked_at"] or item["expires_at"]),
            item["revocation_reason"] or NONE,
        ]
        for item in document["certificates"]
    ]
    head = {
        "Serial number": 3.4,
        "Agent": 4,
        "Status": 1.5,
        "Issued": 2.2,
        "Revoked or expires": 2.2,
        "Reason": 3,
    }
    title = _of("Certificates", len(rows), document["summary"]["certificates"]["in_force_in_period"])
    return _section(title, head, rows)


def _high_risk(document: Json) -> list[Json]:
    rows = [
        [
            _when(event["received_at"]),
            event["action_type"],
            f"{event['risk_score']:.2f}",
            ", ".join(event["reasons"]),
            f"{event['verdict']}, first {_when(event['first_review_at'])}" if event["verdict"] else "none",
            f"{event['agent_name']} ({event['agent_id']})",
        ]
        for event in document["high_risk_events"]
    ]
    head = {"Received": 2.2, "Action": 3, "Score": 1.1, "Reasons": 3.2, "Review": 2.4, "Agent": 4}
    title = _of("High-risk events", len(rows), document["summary"]["events_by_band"]["high"])
    return _section(title, head, rows)


def _section(
    title: str, head: Mapping[str, float], rows: Sequence[Sequence[str]], plot: Json | None = None
) -> list[Json]:
    """Return a heading, a plot and a table of columns with their widths; a note if there are no rows."""
    heading = {"kind": "heading", "text": title}
    if not rows:
        return [heading, {"kind": "note", "text": "None on record."}]
    shown = [] if plot is None else [{**plot, "kind": "plot"}]
    table = {"kind": "table", "head": list(head), "widths": list(head.values()), "rows": rows}
    return [heading, *shown, table]


def _bands(bands: Json) -> list[str]:
    return [f"{bands[band]:,}" for band in ("low", "medium", "high")]


def _of(title: str, listed: int, total: int) -> str:
    return title if listed == total else f"{title} ({listed:,} of {total:,} listed)"


def _when(text: str) -> str:
    """Shorten `2026-11-20T09:00:00.123Z` to `2026-11-20 09:00 UTC`."""
    return f"{text[:10]} {text[11:16]} UTC"
