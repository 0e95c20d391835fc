"""Answers about incidents."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agentid.client.records import Record


@dataclass(frozen=True, kw_only=True)
class TouchedAgent(Record):
    """An agent of an incident, since when and why."""

    agent_id: str
    agent_name: str
    since: datetime
    why: str


@dataclass(frozen=True, kw_only=True)
class Clock(Record):
    """A reporting clock."""

    kind: str
    state: str
    provision: str
    basis: str
    started_at: datetime | None
    due_at: datetime | None
    met_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Incident(Record):
    """An incident with its clocks."""

    reference: str
    id: str
    agent_id: str
    agent_name: str
    title: str
    cause: str
    state: str
    severity: str
    owner: str
    detected_at: datetime
    opened_at: datetime
    contained_at: datetime | None
    closed_at: datetime | None
    updated_at: datetime
    serious_harm: str
    dora_class: str
    aware_at: datetime | None
    ai_act_reported_at: datetime | None
    classified_at: datetime | None
    dora_initial_at: datetime | None
    dora_intermediate_at: datetime | None
    dora_final_at: datetime | None
    merged_into: str | None
    agents: tuple[TouchedAgent, ...]
    clocks: tuple[Clock, ...]


@dataclass(frozen=True, kw_only=True)
class TouchedCertificate(Record):
    """A certificate of an incident's agent, since when and why."""

    certificate_id: str
    serial_number: str
    agent_id: str
    since: datetime
    why: str


@dataclass(frozen=True, kw_only=True)
class TimelineEntry(Record):
    """One thing that happened."""

    id: str
    kind: str
    at: datetime
    actor_kind: str
    actor_id: str
    text: str
    event_id: str | None
    certificate_id: str | None
    serial_number: str
    data: Mapping[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class IncidentDetail(Incident):
    """An incident with its clocks, its first 200 certificates and the newest 200 rows of its timeline."""

    certificates: tuple[TouchedCertificate, ...]
    timeline: tuple[TimelineEntry, ...]


@dataclass(frozen=True, kw_only=True)
class Attachment(Record):
    """A file that stays with you, by its digest."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class ExportedDraft(Record):
    """A frozen version of a notification."""

    id: str
    template: str
    version: int
    digest: str
    actor_kind: str
    actor_id: str
    created_at: datetime
    document: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class IncidentExport(Record):
    """The whole record of an incident: up to 1,000 rows of the timeline, 200 events and 50 drafts."""

    format: str
    exported_at: datetime
    environment: str
    truncated: tuple[str, ...]
    incident: Incident
    timeline: tuple[TimelineEntry, ...]
    attachments: tuple[Attachment, ...]
    agent: Mapping[str, Any]
    agents: tuple[Mapping[str, Any], ...]
    certificates: tuple[Mapping[str, Any], ...]
    events: tuple[Mapping[str, Any], ...]
    verdicts: Mapping[str, Any]
    steps: tuple[Mapping[str, Any], ...]
    audit_log_size: int
    drafts: tuple[ExportedDraft, ...]
