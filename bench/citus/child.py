"""`python -m bench.citus.child`: a process of the service that stores events as its parent tells it.

Each line of standard input is a JSON list of a command and its arguments, each line of the answer JSON.
"""

import json
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import count, cycle
from typing import Any
from uuid import UUID

import django

django.setup()

from agents import services as agents  # noqa: E402
from agents.models import Agent, AgentStatus  # noqa: E402
from agents.services import AgentRegistration  # noqa: E402
from auditlog.vocabulary import Actor  # noqa: E402
from bench.harness.traffic import TOOLS, Habits  # noqa: E402
from certificates.models import AuthorityRole, Certificate, CertificateAuthority  # noqa: E402
from compliance.core import environments  # noqa: E402
from compliance.core.clock import now  # noqa: E402
from compliance.core.environments import Environment  # noqa: E402
from compliance.tenancy import services as tenancy  # noqa: E402
from compliance.tenancy.models import Tenant  # noqa: E402
from events.ingest.event_input import EventInput  # noqa: E402
from events.ingest.ingestion import Submission, ingest_all  # noqa: E402
from events.ingest.storage import ScoredEvent  # noqa: E402

ACTOR = Actor.system("bench")
YEAR = timedelta(days=365)
RETRY_SECONDS = 0.01
Event = dict[str, Any]


def fill(tenants: int, each: int) -> dict[str, list[str]]:
    """Make tenants with active agents, whose certificates are rows alone; return agents by tenant."""
    root = _authority()
    # The service would mirror a tenant in the other environment, whose database here is the same.
    made = (Tenant.objects.create(name=f"bench {number}", created_at=now()) for number in range(tenants))
    return {str(tenant.id): [str(_agent(tenant.id, root).id) for _ in range(each)] for tenant in made}


def _authority() -> CertificateAuthority:
    at = now()
    return CertificateAuthority.objects.create(
        role=AuthorityRole.ROOT,
        common_name="bench",
        serial_number="01",
        key_uri="bench:root",
        certificate_der=b"",
        certificate_url="http://bench.example/ca",
        crl_url="http://bench.example/crl",
        not_before=at,
        not_after=at + YEAR,
        created_at=at,
    )


def _agent(tenant_id: UUID, authority: CertificateAuthority) -> Agent:
    at = now()
    registration = AgentRegistration(
        name="bench",
        model="gpt-5",
        version="2.1.0",
        model_hash="sha256:9f86d081884c7d659a2feaa0c55ad015",
        metadata={"permitted_actions": list(TOOLS)},
    )
    agent = agents.register(tenant_id=tenant_id, registration=registration, actor=ACTOR, now=at)
    Certificate.objects.create(
        tenant_id=tenant_id,
        agent=agent,
        authority=authority,
        serial_number=agent.id.hex,
        kms_key_arn=f"bench:{agent.id}",
        certificate_pem="",
        claims={"permitted_actions": list(TOOLS)},
        not_before=at,
        issued_at=at,
        expires_at=at + YEAR,
    )
    Agent.objects.for_tenant(tenant_id).filter(id=agent.id).update(status=AgentStatus.ACTIVE)
    return agent


class Store:
    """Stores ordinary events of the tenants' agents, in groups of a form."""

    def __init__(self, known: dict[str, list[str]], mark: str) -> None:
        self._mark, self._numbers = mark, count()
        self._chance = random.Random(mark)
        made = {tenant: cycle([Habits.of(agent) for agent in ids]) for tenant, ids in known.items()}
        self._habits, self._tenants = made, cycle(made)

    def group(self, tenants: int, each: int) -> None:
        """Store a group: `each` events of so many tenants, the next ones in turn."""
        chosen = [next(self._tenants) for _ in range(tenants)]
        self.submit([self.event(tenant) for tenant in chosen for _ in range(each)])

    def event(self, tenant: str) -> Submission:
        """Make the next event of a tenant; its session names it alone."""
        made = next(self._habits[tenant]).event(self._chance)
        session = f"{self._mark}-{next(self._numbers)}"
        return Submission(UUID(tenant), EventInput(**made, session_id=session), now())

    def submit(self, submissions: Sequence[Submission]) -> None:
        """Store the events. Raises: Django's errors, and the first error of an event."""
        for outcome in ingest_all(submissions):
            if not isinstance(outcome, ScoredEvent):
                raise outcome


class Sender(threading.Thread):
    """Sends one event after the other for one tenant, again while it fails, until it is stopped."""

    def __init__(self, store: Store, tenant: str) -> None:
        super().__init__(daemon=True)
        self._store, self._tenant = store, tenant
        self._is_over = threading.Event()
        self.acknowledged: list[str] = []
        self.errors: dict[str, int] = {}
        self.longest = 0.0

    def run(self) -> None:
        with environments.use(Environment.LIVE):
            last = time.monotonic()
            while not self._is_over.is_set():
                submission = self._store.event(self._tenant)
                while not self._is_sent(submission):
                    time.sleep(RETRY_SECONDS)
                at = time.monotonic()
                self.longest, last = max(self.longest, at - last), at
                self.acknowledged.append(str(submission.event.session_id))

    def _is_sent(self, submission: Submission) -> bool:
        try:
            self._store.submit([submission])
        except Exception as error:  # noqa: BLE001  (whatever it is, a client sends again)
            name = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            self.errors[name] = self.errors.get(name, 0) + 1
            return False
        return True

    def stop(self) -> dict[str, Any]:
        """End, and say what was sent."""
        self._is_over.set()
        self.join()
        return {"sent": self.acknowledged, "errors": self.errors, "longest": self.longest}


class Child:
    """What the parent asks for."""

    def __init__(self) -> None:
        self.known: dict[str, list[str]] = {}
        self.senders: dict[str, Sender] = {}

    def fill(self, tenants: int, each: int) -> list[str]:
        """Make tenants with agents; return the tenants."""
        self.known = fill(tenants, each)
        self.store = Store(self.known, "cost")
        return list(self.known)

    def callers(self) -> list[tuple[str, list[str]]]:
        """Make an API key for each tenant; return the keys, each with its tenant's agents."""
        return [
            (tenancy.create_key(tenant=Tenant.objects.get(id=id_), actor=ACTOR, now=now()).secret, agents)
            for id_, agents in self.known.items()
        ]

    def groups(self, number: int, tenants: int, each: int) -> int:
        """Store so many groups; return how many events."""
        for _ in range(number):
            self.store.group(tenants, each)
        return number * tenants * each

    def send(self, *tenants: str) -> None:
        """Begin to send events of each tenant."""
        for tenant in tenants:
            self.senders[tenant] = Sender(Store(self.known, f"sent-{tenant}"), tenant)
            self.senders[tenant].start()

    def stop(self) -> dict[str, Any]:
        """End sending; return what each tenant's sender did."""
        return {tenant: sender.stop() for tenant, sender in self.senders.items()}


def main() -> None:
    """Answer until standard input ends."""
    child = Child()
    with environments.use(Environment.LIVE):
        for line in sys.stdin:
            name, *arguments = json.loads(line)
            work: Callable[..., Any] = getattr(child, name)
            print(json.dumps(work(*arguments)), flush=True)


if __name__ == "__main__":
    main()
