"""The enumerations of incidents, and the occurrence by which other rooms open one."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import models


class IncidentState(models.TextChoices):
    """Contained: the agents are stopped or have no certificate in force, or an officer says so.

    Closed and merged are final: such an incident has ended, whereas open and contained ones go on.
    """

    OPEN = "open"
    CONTAINED = "contained"
    CLOSED = "closed"
    MERGED = "merged"


ENDED: Final = (IncidentState.CLOSED, IncidentState.MERGED)
STATED: Final = [choice for choice in IncidentState.choices if choice[0] != IncidentState.MERGED]
"""The states that a person may state; merging has an operation of its own."""


class IncidentSeverity(models.TextChoices):
    """The severity of an incident; `high` until an officer decides."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class IncidentCause(models.TextChoices):
    """The cause that opened an incident or joined it."""

    THRESHOLD = "threshold", "Automatic revocation"
    REVOCATION = "revocation", "Revocation by a person or key"
    VERDICT = "verdict", "Confirmed high-risk event"


class SeriousHarm(models.TextChoices):
    """An officer's verdict on an incident under Article 3(49) and Article 73 of the AI Act."""

    UNDECIDED = "undecided"
    NOT_SERIOUS = "not_serious", "Not a serious incident"
    DEATH = "death", "Death of a person"
    HEALTH = "health", "Serious harm to health"
    CRITICAL_INFRASTRUCTURE = "critical_infrastructure", "Serious disruption of critical infrastructure"
    FUNDAMENTAL_RIGHTS = "fundamental_rights", "Infringement of fundamental rights obligations"
    PROPERTY_OR_ENVIRONMENT = "property_or_environment", "Serious harm to property or the environment"
    WIDESPREAD_INFRINGEMENT = "widespread_infringement", "Widespread infringement"


class DoraClass(models.TextChoices):
    """The classification of an incident under Article 18 of DORA."""

    UNDECIDED = "undecided"
    NOT_MAJOR = "not_major", "Not major, or DORA does not apply"
    MAJOR = "major"


class EntryKind(models.TextChoices):
    """Kinds of rows of an incident's timeline."""

    OPENED = "opened"
    JOINED = "joined"
    CHANGED = "changed"
    NOTE = "note"
    ATTACHMENT = "attachment"
    DEADLINE_NEAR = "deadline_near"
    DEADLINE_MISSED = "deadline_missed"
    DRAFTED = "drafted"
    MERGED = "merged"


@dataclass(frozen=True)
class Occurrence:
    """An observation of an agent by another room: `text` says it in a sentence without the agent's own words.

    `detected_at` is when the service knew. `is_contained`: the agent is stopped, or has no certificate in
    force. `case_number` is what a person calls the case: occurrences of several agents with one number are
    one incident.
    """

    cause: IncidentCause
    agent_id: UUID
    agent_name: str
    text: str
    detected_at: datetime
    is_contained: bool
    event_id: UUID | None = None
    certificate_id: UUID | None = None
    serial_number: str = ""
    case_number: str = ""
