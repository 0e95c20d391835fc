"""A tenant with rows of every kind, and what became of them: the worlds that reports are made of."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connections
from django.test import override_settings

from agents import services as agents
from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog import services as auditlog
from auditlog.disposal import erasing, retention
from auditlog.models import AuditEntry, SignedHead
from auditlog.tests.factories import seal_and_sign
from auditlog.verifying import last_verified
from auditlog.vocabulary import Actor, AuditAction
from certificates import services as certificates
from certificates.models import Certificate
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.stores import sql
from compliance.tests.owner import owning
from delegation.tests.factories import CHAIN, VERIFIED, as_chain, make_token, make_token_key
from events import partitions
from events.models import BehaviorEvent, ReviewVerdict
from events.tests.factories import judge, make_event, make_high_event, store_event
from gateway.approvals.tests.factories import decide, make_approval, use
from incidents.tests.factories import make_closed_incident
from reports.content.evidence import gather
from reports.content.facts import Facts, Frame
from reports.tests.factories import make_frame
from tenancy.models import Tenant

PERSON, KEY = Actor.person(UUID(int=4)), Actor.api_key(UUID(int=5))
SYSTEM = Actor.system("tests")


@dataclass
class World:
    """A report's frame and what the service gathers for it; `tampered`: entries changed behind its back."""

    frame: Frame
    facts: Facts
    tampered: list[str] = field(default_factory=list)


@contextmanager
def periods(folder: Path) -> Iterator[dict[str, World]]:
    """Yield four periods of one tenant: full, empty, partial and dropped."""
    with _acting(Environment.LIVE, folder) as tenant:
        moment, end = now(), now() + timedelta(seconds=1)
        spans = {
            "full": (moment - timedelta(days=20), end),
            "empty": (moment - timedelta(days=60), moment - timedelta(days=40)),
            "partial": (moment - timedelta(days=20), end + timedelta(days=10)),
            "dropped": (moment - timedelta(days=400), end),
        }
        yield {name: _world(tenant, start, until, end) for name, (start, until) in spans.items()}


@contextmanager
def tampered(folder: Path) -> Iterator[dict[str, World]]:
    """Yield a month in whose log an entry was changed and another deleted, by the owner of the tables."""
    with _acting(Environment.LIVE, folder, is_owner=True) as tenant:
        own = AuditEntry.objects.for_tenant(tenant.id)
        changed, deleted = (own.of_type(name).first() for name in ("agent.updated", "certificate.held"))
        assert changed is not None
        assert deleted is not None
        for table in ("auditentry", "leaf"):
            sql.execute(f"ALTER TABLE auditlog_{table} DISABLE TRIGGER USER")
        sql.execute("UPDATE auditlog_auditentry SET actor_id = 'x' WHERE id = %s", [changed.id])
        sql.execute("DELETE FROM auditlog_auditentry WHERE id = %s", [deleted.id])
        end = now() + timedelta(seconds=1)
        yield {"tampered": _world(tenant, end - timedelta(days=20), end, end, [str(changed.id)])}


@contextmanager
def erased(folder: Path) -> Iterator[dict[str, World]]:
    """Yield a month in which parts of entries were erased: of its own, and of one from before."""
    with _acting(Environment.LIVE, folder) as tenant:
        own = AuditEntry.objects.for_tenant(tenant.id)
        chosen = [own.of_type(name).first() for name in ("agent.updated", "delegation.issued")]
        chosen.append(own.get(description="long ago"))
        for entry, parts in zip(
            chosen, (["actor_id", "description"], ["metadata"], ["description"]), strict=True
        ):
            assert entry is not None
            erasing.erase(entry_id=entry.id, parts=parts, reason="asked", actor=SYSTEM, now=now())
        seal_and_sign()
        end = now() + timedelta(seconds=1)
        yield {"erased": _world(tenant, end - timedelta(days=20), end, end)}


@contextmanager
def sandbox(folder: Path) -> Iterator[dict[str, World]]:
    """Yield a month of the test environment: a stop long after its strike, no record of the retention."""
    with _acting(Environment.TEST, folder, is_owner=True) as tenant:
        stop = AuditEntry.objects.for_tenant(tenant.id).of_type("agent.high_risk").get()
        strike = BehaviorEvent.objects.filter(id=(stop.metadata or {})["event_id"])
        strike.update(received_at=stop.created_at - timedelta(seconds=40))
        end = now() + timedelta(seconds=1)
        yield {"test": _world(tenant, end - timedelta(days=20), end, end)}


@contextmanager
def _acting(environment: Environment, folder: Path, *, is_owner: bool = False) -> Iterator[Tenant]:
    """Yield a busy tenant; leave nothing behind."""
    given = {
        "EVENT_ARCHIVE_DIR": str(folder),
        "EVENT_RETENTION_DAYS": 183,
        "AUDIT_VERIFIED_FILE": str(folder / "verified.json"),
    }
    role = owning() if is_owner else nullcontext()
    with override_settings(**given), environments.use(environment), role, environments.atomic():
        tenant = Tenant.objects.create(name="Acme", created_at=now() - timedelta(days=730))
        _populate(tenant, has_dropped=environment is Environment.LIVE and not is_owner)
        yield tenant
        connections[environment.alias].set_rollback(True)


def _populate(tenant: Tenant, *, has_dropped: bool) -> None:
    moment, earlier = now(), now() - timedelta(days=100)
    _entry(tenant, AuditAction.API_KEY_CREATED, "long ago", earlier)
    seal_and_sign()
    trader = make_certified_agent(
        tenant, name="trader", model="m", version="1", metadata={"permitted_actions": ["read"]}
    )
    names = ("attacked", "idle", "held", "lifted", "revoked", "expired")
    attacked, idle, held, lifted, revoked, expired = (
        make_certified_agent(tenant, name=name, owner_name="Kim", owner_email="kim@example.com")
        for name in names
    )
    for agent in (
        trader,
        attacked,
        idle,
        held,
        lifted,
        revoked,
        expired,
    ):  # in service also in the empty period
        Agent.objects.filter(id=agent.id).update(created_at=earlier)
        Certificate.objects.filter(agent=agent).update(
            issued_at=earlier, not_before=earlier, expires_at=earlier + timedelta(days=365)
        )
    Certificate.objects.filter(agent=expired).update(expires_at=moment - timedelta(days=1))
    store_event(trader, 0.1, moment - timedelta(days=300), model_version="v")
    make_event(trader)
    make_event(trader, "transaction_initiated", session_id="s")
    make_event(trader, "transaction_initiated")
    high = [make_high_event(attacked, received_at=now()) for _ in range(3)]  # the third stops the agent
    for actor, verdict, event in ((PERSON, "confirmed", high[0]), (KEY, "dismissed", high[1])):
        judge(event, ReviewVerdict(verdict), actor=actor)
    bare = make_agent(tenant, name="bare")
    for actor, agent in ((PERSON, bare), (KEY, held), (PERSON, lifted)):
        certificates.suspend_agent(tenant_id=tenant.id, agent_id=agent.id, reason="r", actor=actor, now=now())
    certificates.reinstate_agent(
        may_undo_stop=True, tenant_id=tenant.id, agent_id=lifted.id, reason="r", actor=PERSON, now=now()
    )
    certificates.retire_agent(tenant_id=tenant.id, agent_id=revoked.id, reason="r", actor=KEY, now=now())
    make_closed_incident(tenant, agent_id=bare.id)
    _change(tenant, idle, {"version": "2"}, PERSON)
    _change(tenant, idle, {"version": "3"}, KEY)
    _change(tenant, idle, {"enforcement": "observe"}, PERSON)
    make_token_key()
    make_token(trader)
    make_token(trader, subject=VERIFIED)
    make_token(idle, chain=as_chain(CHAIN[1:]))
    use(decide(make_approval(trader), actor=PERSON))
    decide(make_approval(trader, details={}), approved=False, actor=PERSON)
    _entry(tenant, AuditAction.AUDIT_EXPORTED, "exported", now())
    for action in ("access_review.decided", "access_review.overdue", "access_review.done"):
        _entry(tenant, AuditAction(action), "reviewed", now())
    for _ in range(3):
        make_high_event(idle, received_at=now())
    for days in (365, settings.EVENT_RETENTION_DAYS) if environments.current() is Environment.LIVE else ():
        with override_settings(EVENT_RETENTION_DAYS=days):
            retention.record_settings(actor=SYSTEM, now=now())
    if has_dropped:
        assert partitions.maintain(actor=SYSTEM, now=now()).dropped
    newest: SignedHead = seal_and_sign()
    last_verified.keep(newest.note, now=newest.signed_at)
    _entry(tenant, AuditAction.API_KEY_CREATED, "not sealed yet", now())


def _entry(tenant: Tenant, action: AuditAction, description: str, at: datetime) -> None:
    auditlog.record(tenant_id=tenant.id, action=action, description=description, actor=PERSON, now=at)


def _change(tenant: Tenant, agent: Agent, changes: dict[str, Any], actor: Actor) -> None:
    agents.update(tenant_id=tenant.id, agent_id=agent.id, changes=changes, actor=actor, now=now())


def _world(
    tenant: Tenant, start: datetime, end: datetime, generated_at: datetime, tampered: list[str] | None = None
) -> World:
    frame = make_frame(
        tenant_id=tenant.id,
        environment=environments.current().value,
        start=start,
        end=end,
        generated_at=generated_at,
    )
    return World(frame, gather(frame), tampered or [])
