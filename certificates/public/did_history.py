"""The versions of an agent's DID document, derived from its certificates and their holds."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from agents.models import Agent, AgentStatus
from certificates.models import Certificate, EndedHold

TICK = timedelta(microseconds=1)
SECOND = timedelta(seconds=1)


class Version(NamedTuple):
    """What the document says `since` a time until the next version: the certificate in force, if any."""

    since: datetime
    certificate_id: UUID | None = None


class InForce(NamedTuple):
    """A time, its end excluded, in which a certificate was in force."""

    start: datetime
    end: datetime
    certificate_id: UUID


@dataclass(frozen=True)
class DidHistory:
    """The versions of a document, oldest first; the number of the first is 1."""

    versions: list[Version]
    retired_at: datetime | None

    def number_at(self, moment: datetime) -> int:
        """The number of the version in force then; 0 before the first."""
        return bisect_right(self.versions, moment, key=lambda version: version.since)

    def is_retired_at(self, moment: datetime) -> bool:
        return self.retired_at is not None and self.retired_at <= moment


def end_of_second(moment: datetime) -> datetime:
    """The last instant of a second named without a fraction, as DID metadata names times."""
    return moment if moment.microsecond else moment + SECOND - TICK


def history_of(agent: Agent, *, now: datetime) -> DidHistory:
    """The versions up to now, of the current environment's rows."""
    versions = [Version(agent.created_at)]
    for version in _changes(sorted(_times_in_force(agent))):
        if agent.created_at < version.since <= now:
            versions.append(version)
        elif version.since <= agent.created_at:
            versions[0] = versions[0]._replace(certificate_id=version.certificate_id)
    retired_at = agent.status_changed_at if agent.status == AgentStatus.RETIRED else None
    return DidHistory(versions, retired_at)


def _changes(times: Iterable[InForce]) -> Iterator[Version]:
    """A version where a certificate comes into force, and one where none follows on another at once."""
    last: InForce | None = None
    for validity in times:
        if last is not None and last.end < validity.start:
            yield Version(last.end)
        yield Version(validity.start, validity.certificate_id)
        last = validity
    if last is not None:
        yield Version(last.end)


def _times_in_force(agent: Agent) -> Iterator[InForce]:
    """When each certificate was in force: from its issue to its end or revocation, but for its holds."""
    holds: dict[UUID, list[tuple[datetime, datetime]]] = {}
    ended = EndedHold.objects.filter(certificate__agent=agent).order_by("held_at", "id")
    for certificate_id, held_at, ended_at in ended.values_list("certificate_id", "held_at", "ended_at"):
        holds.setdefault(certificate_id, []).append((held_at, ended_at))
    rows = Certificate.objects.filter(agent=agent).order_by("issued_at", "id")
    for row in rows.values_list("id", "issued_at", "expires_at", "revoked_at"):
        certificate_id, start, expires_at, revoked_at = row
        end = min(expires_at + TICK, revoked_at or expires_at + TICK)
        for held_at, ended_at in holds.get(certificate_id, []):
            if start < min(held_at, end):
                yield InForce(start, min(held_at, end), certificate_id)
            start = max(start, ended_at)
        if start < end:
            yield InForce(start, end, certificate_id)
