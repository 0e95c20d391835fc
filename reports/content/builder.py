"""The report's document: pure functions from facts to JSON, and its digest.

The digest is SHA-256 over the canonical JSON (RFC 8785), so it does not depend on white space or the order of
members.
"""

import hashlib
import json
from datetime import date, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import rfc8785

from auditlog.vocabulary import AuditAction
from compliance.core.json_values import Json, written
from reports.content import eu_ai_act, mica
from reports.content.controls import Control
from reports.content.facts import Facts, Frame, Spread
from reports.content.regulations import REGULATIONS
from reports.content.sources import DEFINITIONS, LISTS
from reports.vocabulary import ReportType

FORMAT = "3"
SCHEMA_TEXT = Path(__file__).with_name("report.schema.json").read_text()
SCHEMA = json.loads(SCHEMA_TEXT)
"""The JSON Schema of a report (draft 2020-12)."""
NOTICE = (
    "This report states which records exist and which do not. It is no legal assessment, and it does not say "
    "whether anybody complies with anything. Evidence rests on rows, counted here; what only the service "
    "says of itself is marked as asserted."
)
CONTROLS = {
    ReportType.EU_AI_ACT: eu_ai_act.CONTROLS,
    ReportType.MICA: mica.CONTROLS,
}


def build(kind: ReportType, frame: Frame, facts: Facts) -> Json:
    """Return the whole document, in JSON values; the same facts give the same document."""
    regulation = REGULATIONS[kind]
    return {
        "format": FORMAT,
        "notice": NOTICE,
        "type": kind.value,
        "regulation": regulation.act | {"applications": regulation.applications},
        **framed(frame),
        "covered_from": to_json(facts.covered_from or frame.start),
        "retention": to_json(
            {
                "event_retention_days": facts.event_retention_days,
                "audit_retention_days": facts.audit_retention_days,
                "changes": facts.retention_changes,
                "oldest_event_at": facts.oldest_event_at,
                "oldest_audit_entry_at": facts.oldest_entry_at,
                "audit_entries_from": facts.entries_from or frame.start,
                "archives": facts.archives,
            }
        ),
        "summary": _summary(facts),
        "rows": {
            rows.value: {"definition": text, "list": LISTS.get(rows)} for rows, text in DEFINITIONS.items()
        },
        "controls": [
            {
                **regulation.provisions[control.id],
                "state": control.state.value,
                "evidence": [
                    {"text": each.text, "rows": each.rows.value, "count": each.count}
                    for each in control.evidence
                ],
                "gaps": control.gaps,
                "asserted": control.asserted,
            }
            for control in assess(kind, frame, facts)
        ],
        "trend": {
            "span": facts.trend_span,
            "points": [{"from": to_json(point["at"]), **_bands(point["bands"])} for point in facts.trend],
        },
        "agents": [to_json(row | {"events_by_band": _bands(row["events_by_band"])}) for row in facts.agents],
        "certificates": to_json(facts.certificates),
        "high_risk_events": to_json(facts.high_risk),
        "oversight": to_json(facts.oversight),
    }


def assess(kind: ReportType, frame: Frame, facts: Facts) -> list[Control]:
    """Return the controls of a report, each with the gaps of its whole period."""
    controls = [Control(name, frame, facts) for name in CONTROLS[kind]]
    end = frame.covered_until
    for control in controls:
        CONTROLS[kind][control.id](control)
        is_empty = facts.event_count == facts.entry_count == 0
        control.lacks("No event and no audit entry of the period is stored", when=is_empty)
        text = f"The period had not ended: nothing after {end:%Y-%m-%d %H:%M} UTC counts"
        control.lacks(text, when=end < frame.end)
    return controls


def digest(document: Json) -> str:
    """Return the SHA-256 of the canonical JSON, in lowercase hex."""
    return hashlib.sha256(rfc8785.dumps(document)).hexdigest()


def framed(frame: Frame) -> Json:
    """Return the members that say what a document is about, which its manifest copies."""
    return {
        "report_id": str(frame.report_id),
        "tenant": {"id": str(frame.tenant_id), "name": frame.tenant_name},
        "environment": frame.environment,
        "period_start": to_json(frame.start),
        "period_end": to_json(frame.end),
        "covered_until": to_json(frame.covered_until),
        "generated_at": to_json(frame.generated_at),
        "agent_ids": to_json(frame.agent_ids),
    }


def _summary(facts: Facts) -> Json:
    return {
        "agents": facts.agent_count,
        "enforcement": {
            "tenant": facts.enforcement,
            "agents_observed": facts.observed_agents,
            "would_have_stopped": facts.audited(AuditAction.AGENT_WOULD_HAVE_STOPPED),
        },
        "events": facts.event_count,
        "events_by_band": _bands(facts.events_by_band),
        "events_by_action": dict(sorted(facts.events_by_action.items())),
        "certificates": {
            "in_force_in_period": facts.certificate_count,
            "in_force_at_end": facts.certificates_at_end,
            "on_hold_at_end": facts.certificates_on_hold_at_end,
            "revoked_at_end": facts.certificates_revoked_at_end,
        },
        "high_risk_reviews": {
            "confirmed": facts.verdicts.get("confirmed", 0),
            "dismissed": facts.verdicts.get("dismissed", 0),
            "by": facts.verdicts_by,
            "waiting": facts.high_risk_count - sum(facts.verdicts.values()),
            "seconds_to_first_review": _spread(facts.review_delays),
        },
        "automatic_stops": {
            "made": facts.stop_count,
            "seconds_from_last_strike": _spread(facts.stop_delays),
        },
        "interventions_by_people": facts.human_interventions,
        "model_versions": list(facts.model_versions),
        "delegations": {
            "issued": sum(facts.delegations.values()),
            **{f"root_{name}": facts.delegations.get(name, 0) for name in ("verified", "asserted", "nobody")},
            "checked_against_a_scope": facts.delegations_checked_against_a_scope,
        },
        "audit_entries": {action: dict(sorted(by.items())) for action, by in sorted(facts.acts.items())},
        "incidents": facts.incidents,
        "erased": {"parts": facts.erased_parts, "entries": facts.erased_entries},
        "listed": {
            "agents": len(facts.agents),
            "certificates": len(facts.certificates),
            "high_risk_events": len(facts.high_risk),
            "oversight": len(facts.oversight),
        },
    }


def _spread(spread: Spread | None) -> Json | None:
    if spread is None:
        return None
    times = {"median": spread.median.total_seconds(), "longest": spread.longest.total_seconds()}
    return {"count": spread.count, **times}


def _bands(counts: dict[str, int]) -> dict[str, int]:
    return {band: counts.get(band, 0) for band in ("low", "medium", "high")}


def to_json(value: Any) -> Any:
    """Convert a fact to JSON values: a time in UTC, a tuple as a list."""
    if isinstance(value, datetime):
        return written(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {name: to_json(item) for name, item in value.items()}
    return value
