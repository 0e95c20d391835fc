"""Stop all agents of a kind, and lift the holds of a stop.

A stop commits its set of agents first. Then they are refused, portion by portion; last, the audit log and
webhooks learn of each. Rows and agents are locked in the order of ids.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

from cryptography.x509 import ReasonFlags
from django.db.models import F, Max, OuterRef, Q, Subquery

from agents import services as agents
from agents.errors import AgentNotFound
from agents.models import Agent, AgentStatus, Blueprint
from agents.querysets import AgentQuerySet
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from certificates import services as certificates
from certificates.models import AuthorityRole, Certificate, CertificateAuthority
from certificates.querysets import HOLD
from compliance.core import environments
from compliance.core.json_values import written
from compliance.core.tasks import enqueue_on_commit
from compliance.stores.portions import JobPhase, Jobs
from delegation.stops.models import (
    AgentRelease,
    KindStop,
    StopNotReleasable,
    StopOutcome,
    StoppedAgent,
    StopState,
    StopUnderWay,
)
from delegation.token_keys.signed_records import ensure_signed, root_of
from incidents import services as incidents
from incidents.models import TouchedAgent

RECEIPT: Final = "halt+jwt"
CLOCKS: Final = timedelta(minutes=1)
"""By how much the clocks of two processes may differ."""
MATCHERS: Final[Mapping[str, Callable[[Any], Q]]] = {
    "model_hash": lambda wanted: Q(model_hash=wanted),
    "blueprint_id": lambda wanted: Q(blueprint_id=wanted),
    "agent_ids": lambda wanted: Q(id__in=wanted),
    "owner": lambda wanted: Q(owner_email__iexact=wanted),
    "all": lambda wanted: Q(),
}
"""The agents that each member of `match` names."""

Rows = list[StoppedAgent]


def matching(*, tenant_id: UUID, match: Mapping[str, Any]) -> AgentQuerySet:
    """Return the agents that `match`, an object with one member of `MATCHERS`, names.

    Raises: AgentNotFound, BlueprintNotFound if it names one that the tenant does not have.
    """
    ((by, wanted),) = match.items()
    if by == "blueprint_id":
        Blueprint.objects.for_tenant(tenant_id).find(wanted)
    found = Agent.objects.for_tenant(tenant_id).filter(MATCHERS[by](wanted)).order_by("id")
    if by == "agent_ids" and found.count() != len(set(wanted)):
        raise AgentNotFound()
    return found


def foreseen(
    *, tenant_id: UUID, match: Mapping[str, Any], actor: Actor, now: datetime, **stated: Any
) -> tuple[KindStop, AgentQuerySet]:
    """Return a stop that is not begun, with the agents that match now.

    `stated`: `revoke`, `reason` and `reason_code`. Raises: as `matching`.
    """
    found = matching(tenant_id=tenant_id, match=match)
    stop = KindStop(
        tenant_id=tenant_id,
        match={"owner": None} if "owner" in match else match,  # an address could not be erased from it
        **stated,
        matched=found.count(),
        started_by=actor.id,
        started_by_kind=actor.kind,
        started_at=now,
        worked_at=now,
    )
    return stop, found


def begin(*, actor: Actor, now: datetime, **asked: Any) -> KindStop:
    """Commit a stop, as `foreseen`, with its agents. Raises: as `matching`."""
    with environments.atomic():
        stop, found = foreseen(actor=actor, now=now, **asked)
        ids = list(found.values_list("id", flat=True))
        stop.matched = len(ids)
        stop.save(force_insert=True)
        rows = [StoppedAgent(tenant_id=stop.tenant_id, stop=stop, agent_id=one) for one in ids]
        StoppedAgent.objects.bulk_create(rows, batch_size=10_000)
        said = f"Stop of {stop.matched} agents begun: {stop.reason}"
        _record(stop, AuditAction.STOP_STARTED, said, actor, now, match=asked["match"])
    return stop


def release(*, tenant_id: UUID, stop_id: Any, reason: str, actor: Actor, now: datetime) -> KindStop:
    """Commit that the holds of a stop are to be lifted.

    A released stop can be released again, for agents that another stop kept. Raises: StopNotFound,
    StopNotReleasable.
    """
    with environments.atomic():
        stop = KindStop.objects.for_tenant(tenant_id).locked().find(stop_id)
        if stop.revoke or stop.state not in (StopState.DONE, StopState.RELEASED):
            raise StopNotReleasable()
        held = stop.rows.filter(outcome=StopOutcome.STOPPED).exclude(release=AgentRelease.RELEASED)
        count = held.update(release=AgentRelease.PENDING)
        stop.state, stop.release_reason = StopState.RELEASING, reason
        stop.released_by, stop.released_by_kind, stop.worked_at = actor.id, actor.kind, now
        stop.save(update_fields=["state", "release_reason", "released_by", "released_by_kind", "worked_at"])
        said = f"Release of {count} agents begun: {reason}"
        _record(stop, AuditAction.STOP_RELEASE_STARTED, said, actor, now, release_reason=reason)
    return stop


def work(*, stop: KindStop, now: datetime) -> KindStop:
    """Finish a stop, or a release, of few agents; a task works on more. What fails is left to the sweep."""
    return STOPS.start(stop, stop.matched, now)


def _locked(stop: KindStop, rows: Rows) -> AgentQuerySet:
    own = Agent.objects.for_tenant(stop.tenant_id).filter(id__in=[row.agent_id for row in rows])
    return own.order_by("id").locked()


def _stop(stop: KindStop, rows: Rows, now: datetime) -> None:
    """Have the agents of locked rows refused from now on."""
    found = {agent.id: agent for agent in _locked(stop, rows).only("tenant_id", "status")}
    own = Certificate.objects.for_tenant(stop.tenant_id).filter(agent_id__in=found)
    own = own.revocable(now) if stop.revoke else own.active(now)
    ended: dict[UUID, Certificate] = {}
    for one in own.order_by("id").locked().defer("certificate_pem", "claims"):
        if one.superseded_at is None:
            ended[one.agent_id] = one
        elif stop.revoke:
            certificates.revoke_locked(certificate=one, actor=stop.actor, now=now, **_public(stop))
        else:  # a hold ends the overlap with the successor
            certificates.supersede_from(one, now, actor=stop.actor, now=now)
    standing = {agent.id: agent for agent in found.values() if not agent.is_stopped}
    stopped = {*ended, *standing}
    agents.suspend_all(agents=list(standing.values()), reason=stop.reason, now=now)
    certificates.revoke_all(certificates=list(ended.values()), now=now, **_public(stop))
    own_rows = stop.rows.filter(id__in=[row.id for row in rows])
    own_rows.filter(agent_id__in=standing).update(suspended=True)
    newest = Certificate.objects.order_by("-issued_at", "-id").values("serial_number")
    serial = newest.filter(tenant_id=OuterRef("tenant_id"), agent_id=OuterRef("agent_id"))[:1]
    own_rows.filter(agent_id__in=ended).update(serial_number=Subquery(serial))
    count = own_rows.filter(agent_id__in=stopped).update(outcome=StopOutcome.STOPPED, decided_at=now)
    others = own_rows.filter(outcome=StopOutcome.PENDING)
    skipped = others.update(outcome=StopOutcome.SKIPPED, decided_at=now)
    _count(stop, now, stopped=F("stopped") + count, skipped=F("skipped") + skipped)
    if not stop.rows.filter(outcome=StopOutcome.PENDING).exists():
        _publish_lists(now)


def _public(stop: KindStop) -> dict[str, Any]:
    """Return the reason and code of the certificates; the stop's reason is not public."""
    code = ReasonFlags(stop.reason_code if stop.revoke else HOLD)
    return {"reason": code.value, "code": code}


def _tell(stop: KindStop, rows: Rows, now: datetime) -> None:
    """Audit and publish what was done to the agents of locked rows, as of when it was done."""
    own_agents = Agent.objects.for_tenant(stop.tenant_id).in_bulk([row.agent_id for row in rows])
    serials = [row.serial_number for row in rows if row.serial_number]
    own = Certificate.objects.for_tenant(stop.tenant_id).filter(serial_number__in=serials)
    ended = {one.serial_number: one for one in own.defer("certificate_pem", "claims")}
    for moment, done in groupby(rows, key=attrgetter("decided_at")):
        suspended, revoked = [], []
        for row in done:
            if row.suspended:
                agent = own_agents[row.agent_id]
                agent.status = AgentStatus.SUSPENDED  # as it was then
                suspended.append(agent)
            if row.serial_number:
                certificate = ended[row.serial_number]
                certificate.revoked_at = certificate.revoked_at or moment
                revoked.append(certificate)
        agents.announce_suspended(agents=suspended, reason=stop.reason, actor=stop.actor, now=moment)
        certificates.announce_revoked(certificates=revoked, actor=stop.actor, now=moment, **_public(stop))
    stop.rows.filter(id__in=[row.id for row in rows]).update(told=True)
    _count(stop, now)


def _release(stop: KindStop, rows: Rows, now: datetime) -> None:
    """Reinstate the agents of locked rows, but for those that somebody else stopped since."""
    found = {agent.id: agent for agent in _locked(stop, rows)}
    own, serials = Certificate.objects.for_tenant(stop.tenant_id), [row.serial_number for row in rows]
    ended = {one.agent_id: one for one in own.filter(serial_number__in=serials).order_by("id").locked()}
    stopped_at = {row.agent_id: row.decided_at for row in rows if row.decided_at}
    others = StoppedAgent.objects.filter(tenant_id=stop.tenant_id, agent_id__in=stopped_at)
    others = others.exclude(stop=stop).exclude(stop__state=StopState.RELEASED)
    kept = {
        one.agent_id
        for one in others
        if one.decided_at is None or one.decided_at + CLOCKS >= stopped_at[one.agent_id]
    }
    kept |= {agent_id for agent_id, one in ended.items() if one.revocation_code != HOLD}
    kept |= {
        agent.id
        for agent in found.values()
        if agent.status != AgentStatus.SUSPENDED or agent.status_changed_at != stopped_at[agent.id]
    }
    freed = [agent for agent in found.values() if agent.id not in kept]
    held = [ended[one.id] for one in freed if one.id in ended and ended[one.id].is_on_hold(now)]
    certified = {one.agent_id for one in held}
    said: dict[str, Any] = {"reason": stop.release_reason, "actor": stop.releasing_actor, "now": now}
    agents.reinstate_all(agents=freed, certified=certified, **said)
    certificates.release_all(certificates=held, actor=stop.releasing_actor, now=now)
    touched = TouchedAgent.objects.filter(agent_id__in={*found} - kept, is_current=True)
    for agent in [found[one] for one in sorted({*touched.values_list("agent_id", flat=True)})]:
        incidents.note_reinstated(tenant_id=stop.tenant_id, agent_id=agent.id, agent_name=agent.name, **said)
    done = stop.rows.filter(id__in=[row.id for row in rows])
    done.update(release=AgentRelease.RELEASED)
    done.filter(agent_id__in=kept).update(release=AgentRelease.KEPT)
    _count(stop, now, released=F("released") + len(freed))


def _finish(stop: KindStop, now: datetime) -> None:
    """Say that a stop or its release is done, once, and have the lists published."""
    with environments.atomic():
        stop = KindStop.objects.locked().get(id=stop.id)
        if any(phase.due(stop, now).exists() for phase in PHASES.get(stop.state, ())):
            return  # its release began meanwhile
        if stop.state == StopState.RUNNING:
            last = stop.rows.aggregate(last=Max("decided_at"))["last"]
            stop.state, stop.ended_at = StopState.DONE, last or now
            stop.root = root_of(lines_of(stop)).hex()
            stop.save(update_fields=["state", "ended_at", "root"])
            counts = {name: getattr(stop, name) for name in ("stopped", "skipped", "failed")}
            said = f"Stop done: {', '.join(f'{count} {name}' for name, count in counts.items())}"
            _record(stop, AuditAction.STOP_DONE, said, stop.actor, now, **counts, root=stop.root)
        elif stop.state == StopState.RELEASING:
            stop.state, stop.released_at = StopState.RELEASED, now
            stop.save(update_fields=["state", "released_at"])
            said = f"Stop released: {stop.released} of {stop.stopped} agents"
            _record(stop, AuditAction.STOP_RELEASED, said, stop.releasing_actor, now, released=stop.released)
        _publish_lists(now)


def _publish_lists(now: datetime) -> None:
    for authority in CertificateAuthority.objects.publishing(now).filter(role=AuthorityRole.ISSUING):
        enqueue_on_commit(certificates.PUBLISH, authority_id=str(authority.id))


def _record(
    stop: KindStop, action: AuditAction, description: str, actor: Actor, now: datetime, **more: Any
) -> None:
    names = ("match", "revoke", "reason", "reason_code", "matched")
    metadata = {"stop_id": str(stop.id), **{name: getattr(stop, name) for name in names}, **more}
    auditlog.record(of=stop, action=action, description=description, metadata=metadata, actor=actor, now=now)


def _count(stop: KindStop, now: datetime, **counts: Any) -> None:
    KindStop.objects.filter(id=stop.id).update(**counts, worked_at=now)


def _fail(stop: KindStop, row_id: int, now: datetime) -> int:
    """Say of an agent that it could not be stopped."""
    with environments.atomic():
        pending = stop.rows.filter(id=row_id, outcome=StopOutcome.PENDING)
        count = pending.update(outcome=StopOutcome.FAILED, decided_at=now)
        _count(stop, now, failed=F("failed") + count)
    return count


def _leave_untold(stop: KindStop, row_id: int, now: datetime) -> int:
    """Record of a stopped agent that its entries and messages could not be made."""
    with environments.atomic():
        row = stop.rows.filter(id=row_id, told=False)
        agent_id = row.values_list("agent_id", flat=True).first()
        count = row.update(told=True)
        if count:
            said = f"Agent {agent_id} is stopped; its owners and webhooks could not be told"
            _record(stop, AuditAction.STOP_UNTOLD, said, stop.actor, now, agent_id=str(agent_id))
    return count


def _keep(stop: KindStop, row_id: int, now: datetime) -> int:
    """Say of an agent that it could not be released."""
    return stop.rows.filter(id=row_id, release=AgentRelease.PENDING).update(release=AgentRelease.KEPT)


def lines_of(stop: KindStop) -> list[dict[str, Any]]:
    """One line for each agent of the stop, in the order of the tree's leaves."""
    columns = stop.rows.order_by("id").values_list("agent_id", "serial_number", "decided_at", "outcome")
    return [
        {
            "agent_id": str(agent_id),
            "serial": serial,
            "stopped_at": written(decided_at) if outcome == StopOutcome.STOPPED else None,
            "outcome": outcome,
        }
        for agent_id, serial, decided_at, outcome in columns
    ]


def receipt_of(stop: KindStop, *, now: datetime) -> str:
    """Return the receipt of a stop, signed when first asked for: a JWS over the Merkle root of its lines.

    Raises: StopUnderWay, Unavailable.
    """
    if stop.ended_at is None:
        raise StopUnderWay(retry_after=1)
    names = ("reason", "reason_code", "revoke", "stopped", "skipped", "failed")
    claims = {name: getattr(stop, name) for name in names}
    claims |= {"stop_id": str(stop.id), "count": stop.matched}
    return ensure_signed(stop, "receipt", claims, typ=RECEIPT, now=now)


PHASES: Final[Mapping[str, Sequence[JobPhase[KindStop]]]] = {
    StopState.RUNNING: (
        JobPhase(lambda stop, _: stop.rows.filter(outcome=StopOutcome.PENDING), _stop, 1_000, _fail),
        JobPhase(lambda stop, _: stop.rows.filter(outcome="stopped", told=False), _tell, 250, _leave_untold),
    ),
    StopState.RELEASING: (
        JobPhase(lambda stop, _: stop.rows.filter(release=AgentRelease.PENDING), _release, 250, _keep),
    ),
}
"""The phases of the unfinished states, in order."""
STOPS: Final = Jobs(KindStop, "stops.work", 100, lambda stop: PHASES[stop.state], _finish)
