"""Gathering of a report's facts from the other apps' rows; PostgreSQL counts, and lists are bounded."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple
from uuid import UUID

from cryptography.x509 import load_pem_x509_certificate
from django.conf import settings
from django.db.models import Count, Exists, Max, Min, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Trunc

from agents.models import Agent, AgentStatus
from auditlog import guards
from auditlog.models import AuditEntry
from auditlog.querysets import AuditEntryQuerySet
from auditlog.sealing.tree import OF_TREE, head, latest_checkpoint
from auditlog.verifying.chosen_entries import compare, places_without_entry
from auditlog.vocabulary import AuditAction
from certificates.models import Certificate
from certificates.pki.x509 import Validity
from compliance.core.encodings import b64_encode
from compliance.stores import sql
from delegation.jose.tokens import ChainActorType, RootAssurance
from events.models import ActionType, BehaviorEvent
from events.querysets import BehaviorEventQuerySet
from incidents.models import TimelineEntry
from incidents.vocabulary import EntryKind
from reports.content import delays
from reports.content.facts import Facts, Frame, Row, fields_of
from reports.content.kept import archived_spans, covered_from, entries_from, retention_changes, whole_log
from reports.content.mica import MAX_VALIDITY
from reports.content.rows_of import (
    INTERVENTIONS,
    agents_of,
    certificates_of,
    certified_ids,
    entries_of,
    events_of,
    in_force_at_end,
    incidents_of,
    interventions_in,
    on_hold_at_end,
    revoked_at_end,
)
from tenancy.models import Enforcement, Tenant


class ModeChange(NamedTuple):
    """An audited change; None is the mode of the agent's tenant."""

    at: datetime
    before: str | None
    after: str | None


@dataclass(frozen=True)
class ModeHistory:
    """The mode that a row has, and its changes, oldest first."""

    current: str | None
    changes: Sequence[ModeChange] = ()

    def at(self, moment: datetime) -> str | None:
        """Return the mode at a moment: what the last change up to it set, or the first one after it found."""
        past = bisect_right(self.changes, moment, key=lambda change: change.at)
        if past:
            return self.changes[past - 1].after
        return self.changes[0].before if self.changes else self.current


def agent_mode(
    own: ModeHistory, tenants: ModeHistory, *, start: datetime, end: datetime
) -> tuple[str, timedelta]:
    """Return an agent's mode at the end of [start, end), and for how long it was only observed.

    Its own mode counts, else its tenant's.
    """
    moments = {change.at for change in (*own.changes, *tenants.changes) if start < change.at < end}
    bounds = [start, *sorted(moments), max(start, end)]
    modes = [own.at(moment) or tenants.at(moment) or "" for moment in bounds]
    spans = zip(modes, pairwise(bounds), strict=False)
    observed = (until - since for mode, (since, until) in spans if mode == Enforcement.OBSERVE)
    return modes[-1], sum(observed, timedelta())


LISTED = 200
LISTED_AGENTS = 1_000
REASONS = 3
DAYS_UP_TO, WEEKS_UP_TO = timedelta(days=62), timedelta(days=366)
MODE_CHANGES = (AuditAction.TENANT_ENFORCEMENT_CHANGED, AuditAction.AGENT_ENFORCEMENT_CHANGED)
OVERSIGHT = (*INTERVENTIONS, *MODE_CHANGES, AuditAction.AGENT_WOULD_HAVE_STOPPED)
TRANSACTIONS = (ActionType.TRANSACTION_INITIATED, ActionType.TRANSACTION_ANOMALY)
_UNVERSIONED = Q(model=None) | Q(model="") | Q(version=None) | Q(version="")
_UNDECLARED_SCOPE = Q(metadata__permitted_actions__isnull=True) | Q(metadata__permitted_actions=None)


def gather(frame: Frame) -> Facts:
    """Return all facts of `frame`. Call it inside a snapshot, so that they are consistent."""
    agents, certificates = agents_of(frame), certificates_of(frame)
    tenants_mode, modes = _modes(frame, agents)
    events, entries = events_of(frame), entries_of(frame)
    spans = archived_spans(frame)
    oldest_entry = AuditEntry.objects.for_tenant(frame.tenant_id).order_by("created_at", "id").first()
    erased = entries.of_type(AuditAction.AUDIT_ERASED).values_list("affected_id", "metadata__parts")
    parts = {(entry_id, part) for entry_id, names in erased for part in names}
    openings = TimelineEntry.objects.filter(incident__in=incidents_of(frame), kind=EntryKind.OPENED)
    active = agents.filter(status=AgentStatus.ACTIVE)
    heard = events.filter(agent_id=OuterRef("pk"), tenant_id=OuterRef("tenant_id")).order_by()
    transactions = events.filter(action_type__in=TRANSACTIONS)
    span = trend_span(frame.end - frame.start)
    return Facts(
        agents=tuple(_agent_facts(frame, agents, events, modes)),
        agent_count=agents.count(),
        agents_without_model_or_version=agents.filter(_UNVERSIONED).count(),
        agents_without_scope=agents.filter(_UNDECLARED_SCOPE).count(),
        uncertified_active_agents=active.exclude(id__in=certified_ids(frame)).count(),
        owned_agents=agents.exclude(owner_email=None).count(),
        orphaned_agents=agents.orphaned().count(),
        silent_agents=active.exclude(Exists(heard)).count(),
        enforcement=tenants_mode,
        observed_agents=sum(observed > timedelta() for _, observed in modes.values()),
        certificates=tuple(_certificate_facts(frame, certificates)),
        certificate_count=certificates.count(),
        certificates_at_end=in_force_at_end(frame, certificates).count(),
        certificates_on_hold_at_end=on_hold_at_end(frame, certificates).count(),
        certificates_revoked_at_end=revoked_at_end(frame, certificates).count(),
        overlong_certificates=_overlong(certificates),
        high_risk=tuple(_high_risk_facts(events)),
        events_by_band=_counts(events, "risk_band"),
        events_by_action=_counts(events, "action_type"),
        model_versions=tuple(sorted(_counts(events, "model_version"))),
        **delays.reviews(events.high_risk()),
        unlinked_transactions=transactions.filter(chain_id=None, session_id=None).count(),
        trend_span=span,
        trend=tuple(_trend(events, span)),
        oversight=tuple(_oversight_facts(entries)),
        acts=_acts(entries),
        human_interventions=interventions_in(entries).count(),
        stop_delays=delays.stop_delays(entries),
        oldest_event_at=_oldest_event(frame),
        oldest_entry_at=oldest_entry.created_at if oldest_entry else None,
        event_retention_days=settings.EVENT_RETENTION_DAYS,
        audit_retention_days=settings.AUDIT_RETENTION_DAYS,
        retention_changes=tuple(retention_changes(frame)),
        archives=tuple(spans[:LISTED]),
        covered_from=covered_from(frame, spans),
        entries_from=entries_from(frame),
        is_log_guarded=not sql.triggers_not_in_force(guards.TRIGGERS),
        incidents=_counts(incidents_of(frame), "state"),
        incidents_opened_by=_counts(openings, "actor_kind"),
        erased_parts=len(parts),
        erased_entries=len({entry_id for entry_id, _ in parts}),
        **_delegation_counts(entries),
        **_sealing(frame, entries),
    )


def _trend(events: BehaviorEventQuerySet, span: str) -> Iterable[Row]:
    bands: dict[datetime, dict[str, int]] = defaultdict(dict)
    rows = events.annotate(at=Trunc("received_at", span)).order_by("at").values("at", "risk_band")
    for row in rows.annotate(number=Count("id")):
        bands[row["at"]][row["risk_band"]] = row["number"]
    return ({"at": at, "bands": counts} for at, counts in sorted(bands.items()))


def _acts(entries: AuditEntryQuerySet) -> dict[str, dict[str, int]]:
    """Return how many entries there are of each action, by the kind of who acted."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for row in entries.order_by().values("event_type", "actor_kind").annotate(number=Count("id")):
        found[row["event_type"]][row["actor_kind"]] = row["number"]
    return dict(found)


def _oldest_event(frame: Frame) -> datetime | None:
    """Return when the oldest event stored was received; an index finds each agent's."""
    own = BehaviorEvent.objects.filter(agent_id=OuterRef("pk"), tenant_id=OuterRef("tenant_id"))
    first = own.order_by("id").values("received_at")[:1]
    agents = Agent.objects.for_tenant(frame.tenant_id).annotate(first_at=Subquery(first))
    found: datetime | None = agents.aggregate(oldest=Min("first_at"))["oldest"]
    return found


def _delegation_counts(entries: AuditEntryQuerySet) -> Row:
    issued = entries.of_type(AuditAction.DELEGATION_ISSUED)
    people = issued.filter(metadata__chain__0__type=ChainActorType.HUMAN.value)
    verified = people.filter(metadata__root_assurance=RootAssurance.VERIFIED.value).count()
    return {
        "delegations": {
            "verified": verified,
            "asserted": people.count() - verified,
            "nobody": issued.count() - people.count(),
        },
        "delegations_checked_against_a_scope": issued.filter(metadata__scope_checked=True).count(),
    }


def _overlong(certificates: QuerySet[Certificate]) -> int:
    """Return how many are valid for longer than the policy has it, by what was signed or by their rows."""
    rows = certificates.order_by().values_list("certificate_pem", "issued_at", "expires_at")
    return sum(
        max(Validity.of(load_pem_x509_certificate(pem.encode())).duration, end - start) > MAX_VALIDITY
        for pem, start, end in rows.iterator(chunk_size=LISTED)
    )


def _sealing(frame: Frame, entries: AuditEntryQuerySet) -> Row:
    """Return what the newest checkpoint and the newest witnessed one cover, by hashes computed anew."""
    newest, witnessed = latest_checkpoint(), latest_checkpoint(f"{OF_TREE} AND has_quorum")
    if newest is None:
        return {}
    own = (
        AuditEntry.objects.for_tenant(frame.tenant_id)
        .order_by("created_at", "id")
        .values_list("id", flat=True)
    )
    return {
        "checkpoint_size": newest.size,
        "checkpoint_root": b64_encode(bytes(newest.root)),
        "witnessed_size": witnessed.size if witnessed else 0,
        "comparison": compare(entries, newest),
        "places_without_entry": places_without_entry(
            after=own.filter(created_at__lt=frame.start).last(),
            before=own.filter(created_at__gte=frame.covered_until).first(),
            size=newest.size,
            minimum_index=head().minimum_index,
        ),
        "whole_log": whole_log(),
    }


def trend_span(length: timedelta) -> str:
    """Return the step of a trend, which for most periods gives 10 to 60 points."""
    if length <= DAYS_UP_TO:
        return "day"
    return "week" if length <= WEEKS_UP_TO else "month"


def _modes(frame: Frame, agents: QuerySet[Agent]) -> tuple[str, dict[UUID, tuple[str, timedelta]]]:
    """Return the tenant's mode and each agent's; a retired agent is observed no longer."""
    # All up to now, by the id of their tenant or agent: later ones tell what stood before.
    changes: dict[str, list[ModeChange]] = defaultdict(list)
    entries = AuditEntry.objects.for_tenant(frame.tenant_id).filter(event_type__in=MODE_CHANGES)
    names = ("affected_id", "created_at", "metadata__before", "metadata__after")
    for row_id, *change in entries.order_by("created_at", "id").values_list(*names):
        changes[str(row_id)].append(ModeChange(*change))
    current = Tenant.objects.get(id=frame.tenant_id).enforcement
    tenants = ModeHistory(current, changes[str(frame.tenant_id)])
    found = {}
    for agent in agents.only("enforcement", "created_at", "status", "status_changed_at"):
        own = ModeHistory(agent.enforcement, changes[str(agent.id)])
        is_retired = agent.status == AgentStatus.RETIRED
        end = min(frame.covered_until, agent.status_changed_at) if is_retired else frame.covered_until
        found[agent.id] = agent_mode(own, tenants, start=max(frame.start, agent.created_at), end=end)
    return tenants.at(frame.covered_until) or current, found


def _agent_facts(
    frame: Frame,
    agents: QuerySet[Agent],
    events: BehaviorEventQuerySet,
    modes: Mapping[UUID, tuple[str, timedelta]],
) -> Iterable[Row]:
    listed = list(agents.order_by("-risk_score", "id")[:LISTED_AGENTS])
    certified = {row["agent_id"] for row in certified_ids(frame)}
    bands: dict[Any, dict[str, int]] = defaultdict(dict)
    latest: dict[Any, datetime] = {}
    rows = events.filter(agent__in=listed).order_by().values("agent_id", "risk_band")
    for row in rows.annotate(number=Count("id"), last=Max("received_at")):
        bands[row["agent_id"]][row["risk_band"]] = row["number"]
        latest[row["agent_id"]] = max(row["last"], latest.get(row["agent_id"], row["last"]))
    for agent in listed:
        yield {
            **fields_of(agent, "id", "name", "model", "version", "model_hash", "status", "risk_score"),
            "registered_at": agent.created_at,
            "permitted_actions": agent.permitted_actions,
            "has_financial_limits": bool(agent.financial_scope),
            "is_certified": agent.id in certified,
            "enforcement": modes[agent.id][0],
            "seconds_observed": int(modes[agent.id][1].total_seconds()),
            "events_by_band": bands.get(agent.id, {}),
            "last_event_at": latest.get(agent.id),
        }


def _certificate_facts(frame: Frame, certificates: QuerySet[Certificate]) -> Iterable[Row]:
    """Yield the newest certificates; revoked ones with the time from the high-risk event."""
    shortly_before = BehaviorEvent.objects.high_risk().filter(
        agent_id=OuterRef("agent_id"),
        tenant_id=OuterRef("tenant_id"),
        received_at__lte=OuterRef("revoked_at"),
        received_at__gte=OuterRef("revoked_at") - settings.HIGH_RISK_WINDOW,
    )
    last_high = Subquery(shortly_before.order_by("-received_at").values("received_at")[:1])
    for row in (
        certificates.annotate(last_high=last_high)
        .select_related("agent")
        .order_by("-issued_at", "-id")[:LISTED]
    ):
        is_timed = row.revoked_at is not None and row.last_high is not None
        delay = (row.revoked_at - row.last_high).total_seconds() if is_timed else None
        yield {
            **fields_of(row, "serial_number", "agent_id", "issued_at", "expires_at", "revoked_at"),
            "agent_name": row.agent.name,
            "status": row.status_at(frame.generated_at),
            "revocation_reason": row.revocation_reason,
            # From the last high-risk event to the revocation; None if there was none shortly before.
            "seconds_from_high_risk_event": delay,
        }


def _high_risk_facts(events: BehaviorEventQuerySet) -> Iterable[Row]:
    names = ("id", "agent_id", "action_type", "risk_score", "occurred_at", "received_at")
    newest = delays.with_reviews(events.high_risk()).order_by("-received_at", "-id")[:LISTED]
    for event in newest.select_related("agent"):
        yield {
            **fields_of(event, *names),
            "agent_name": event.agent.name,
            "reasons": [str(reason.get("name", "")) for reason in event.reasons[:REASONS]],
            "verdict": event.said,
            "first_review_at": event.first_review_at,
        }


def _oversight_facts(entries: QuerySet[AuditEntry]) -> Iterable[Row]:
    for entry in entries.filter(event_type__in=OVERSIGHT).order_by("-created_at", "-id")[:LISTED]:
        yield {
            **fields_of(entry, "actor_type", "actor_id"),
            "at": entry.created_at,
            "what": entry.event_type,
            "subject": entry.affected_id or "",
            "description": entry.description or "",
        }


def _counts(rows: QuerySet[Any], field: str) -> dict[str, int]:
    found = rows.order_by().values(field).annotate(number=Count("id"))
    return {row[field]: row["number"] for row in found}
