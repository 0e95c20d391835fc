"""The document of an attestation: each claim counts rows, and names the newest of them."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, DateTimeField, F, FloatField, Func, Max, Q, QuerySet, Value

from agents.models import OWNER_ROLES, Agent
from agents.risk import BANDS, band_of
from auditlog.actors.requests import record_taken
from auditlog.vocabulary import Actor, AuditAction
from certificates.errors import MomentNotPast
from certificates.models import Certificate
from compliance.core import environments
from compliance.core.identifiers import new_id
from compliance.core.json_values import Json
from delegation.reviews.models import AccessReviewItem
from events.risk.rolling import HALF_LIFE
from incidents.models import Incident
from reports import services
from reports.bundles.lists import gather_lists
from reports.content.builder import framed, to_json
from reports.content.facts import Frame, fields_of
from reports.content.kept import archived_spans, covered_from, entries_from
from reports.content.regulations import REGULATIONS
from reports.content.rows_of import INTERVENTIONS, entries_of, events_of
from reports.errors import NotRegisteredThen
from reports.models import Report
from reports.standing import page
from reports.standing.past import CLAIMS, MEMBERS, PastAgent, past_agent
from reports.vocabulary import ReportType

TYPE: Final = "attestation"
NOTICE: Final = (
    "States what the records say of one agent at one moment, and which rows they are. It is no legal "
    "assessment, and gives no verdict on whether anybody meets any duty."
)
CERTIFIED: Final = ("id", "serial_number", "issued_at", "expires_at")
NAMED: Final = 10
"""Rows that a claim names at most, the newest; it counts all."""
QUERY_TIMEOUT_SECONDS: Final = 30
OVERSIGHT: Final = (*INTERVENTIONS, AuditAction.CERTIFICATE_HELD, AuditAction.CERTIFICATE_RELEASED)
MONITORING: Final = (AuditAction.EVENT_REVIEWED, AuditAction.AGENT_STRIKE, AuditAction.AGENT_HIGH_RISK)


def attest(
    *, tenant_id: UUID, agent_id: Any, at: datetime | None, kind: str, actor: Actor, now: datetime
) -> Report:
    """Return the attestation of an agent at a moment, now without one, and audit it.

    It is a report that is not stored, with its signed files; `kind` is the form that is taken away. Raises:
    AgentNotFound, MomentNotPast, NotRegisteredThen, and 503 errors.
    """
    moment = at or now
    if moment > now:
        raise MomentNotPast()
    with environments.snapshot(timeout_seconds=QUERY_TIMEOUT_SECONDS):
        agent = Agent.objects.for_tenant(tenant_id).with_tenant().find(agent_id)
        if moment < agent.created_at:
            raise NotRegisteredThen()
        frame = Frame(
            report_id=new_id(),
            tenant_id=tenant_id,
            tenant_name=agent.tenant.name,
            environment=environments.current().value,
            start=moment - settings.RISK_WINDOW,
            end=moment,
            generated_at=now,
            agent_ids=(agent.id,),
        )
        document, lists = to_json(_document(agent, past_agent(agent, frame), frame)), gather_lists(frame)
    files = services.sign(document, lists, now, draw=page.render)
    made = Report(id=frame.report_id, type=TYPE, period_start=moment, **files)
    record_taken(
        actor=actor,
        action=AuditAction.AGENT_ATTESTED,
        of=agent,
        description=f"Attestation of agent {document['agent']['name']} made as {kind.upper()}",
        format=kind,
        at=document["at"],
        attestation_id=document["report_id"],
        sha256=made.digest,
    )
    return made


def _document(agent: Agent, past: PastAgent, frame: Frame) -> Json:
    known, risk = past.known, _risk(past, frame)
    touched = {"agents__agent_id": agent.id, "agents__since__lte": frame.end, "opened_at__lte": frame.end}
    incidents = Incident.objects.for_tenant(agent.tenant_id).filter(**touched)
    applied = {"tenant_id": agent.tenant_id, "agent_id": agent.id, "applied_at__lte": frame.end}
    reviews = AccessReviewItem.objects.filter(**applied).order_by("-applied_at", "-id")
    decided = ("review_id", "decision", "removed", "decided_by")
    return {
        "format": "1",
        "notice": NOTICE,
        "type": TYPE,
        **framed(frame),
        "at": frame.end,
        "agent": {
            "id": agent.id,
            "did": agent.did,
            "registered_at": agent.created_at,
            **{name: known.get(name) for name in ("name", *CLAIMS, "status")},
        },
        "certificate": past.certificate
        and {
            **fields_of(past.certificate, *CERTIFIED),
            "status": past.certificate_status,
            "revoked_at": past.revoked_at,
        },
        "scope": {
            "permitted_actions": known.get("permitted_actions"),
            "stated_by": "certificate" if past.certificate else "profile",
        },
        **{role: known.get(role) for role in OWNER_ROLES},
        "risk": risk,
        "last_access_review": reviews.values(*decided, finished_at=F("applied_at")).first(),
        "incidents": {
            "count": incidents.count(),
            "newest": [
                {
                    **fields_of(row, "id", "reference", "cause", "opened_at"),
                    "closed_at": row.closed_at if row.closed_at and row.closed_at <= frame.end else None,
                }
                for row in incidents.order_by("-opened_at", "-id")[:NAMED]
            ],
        },
        "controls": _controls(agent, past, frame, incidents),
        "gaps": list(_gaps(past, frame)),
        "summary": {"model_versions": risk["model_versions"]},
    }


def _risk(past: PastAgent, frame: Frame) -> Json:
    """Return the score as `events.risk.rolling` defines it, and the events and stops of the period."""
    events = events_of(frame)
    faded: Func = Func(
        Value(frame.end, output_field=DateTimeField()),
        F("received_at"),
        arg_joiner=" - ",
        template=f"power(0.5, extract(epoch FROM %(expressions)s)::float8 / {HALF_LIFE.total_seconds()})",
        output_field=FloatField(),
    )
    versions: Any = ArrayAgg("model_version", distinct=True)
    bands = {band: Count("id", filter=Q(risk_band=band)) for band in BANDS}
    found = events.aggregate(peak=Max(F("risk_score") * faded), versions=versions, **bands)
    score = round(found.pop("peak") or 0.0, 6)
    recent = events_of(replace(frame, start=frame.end - settings.HIGH_RISK_WINDOW))
    high = events.high_risk().order_by("-received_at", "-id")
    return {
        "days": settings.RISK_WINDOW.days,
        "score": score,
        "band": band_of(score),
        "model_versions": sorted(found.pop("versions") or ()),
        "events_by_band": found,
        "high_risk_events": list(high.values("id", "received_at", "risk_score")[:NAMED]),
        "strikes": {
            "counting": recent.strikes(frame.end, past.reinstated_at).count(),
            "of": settings.HIGH_RISK_STRIKES,
            "window_seconds": int(settings.HIGH_RISK_WINDOW.total_seconds()),
        },
        "automatic_stops": entries_of(frame).of_type(AuditAction.AGENT_HIGH_RISK).count(),
    }


def _controls(agent: Agent, past: PastAgent, frame: Frame, incidents: QuerySet[Any]) -> list[Json]:
    """Count the rows behind each provision of the AI Act, and name the newest of each kind."""
    certificates = Certificate.objects.filter(id__in=[past.certificate.id] if past.certificate else [])
    entries, provisions = entries_of(frame), REGULATIONS[ReportType.EU_AI_ACT].provisions
    # By the id that reports give the provision, and by kind.
    behind: dict[str, dict[str, QuerySet[Any]]] = {
        "aia-12-2-a": {"event": events_of(frame)},
        "aia-13": {"agent": Agent.objects.filter(id=agent.id), "certificate": certificates},
        "aia-14": {"audit_entry": entries.filter(event_type__in=OVERSIGHT)},
        "aia-26-5": {"audit_entry": entries.filter(event_type__in=MONITORING)},
        "aia-73": {"incident": incidents},
    }
    return [
        {
            **{key: provisions[name][key] for key in ("id", "reference", "title")},
            "count": sum(each.count() for each in rows.values()),
            "rows": [
                {"kind": kind, "id": row_id}
                for kind, each in rows.items()
                for row_id in each.order_by("-id").values_list("id", flat=True)[:NAMED]
            ],
        }
        for name, rows in behind.items()
    ]


def _gaps(past: PastAgent, frame: Frame) -> Iterable[str]:
    """Yield what the records lack by now."""
    for name in sorted({*MEMBERS}.difference(past.known)):
        yield f"The records do not tell any more: {name.replace('_', ' ')} at that time"
    if (start := covered_from(frame, archived_spans(frame))) is not None:
        yield f"Events received before {start:%Y-%m-%d} were dropped and are not counted"
    if (start := entries_from(frame)) is not None:
        yield f"Audit entries made before {start:%Y-%m-%d} were dropped and are not counted"
