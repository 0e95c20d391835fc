"""A tenant with a key and a certified agent of theirs, and a web worker to report to."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest
from django.db import connection
from django.db.models import QuerySet

from agents.models import Agent
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.stores import redis
from compliance.tests.client import ApiClient
from compliance.tests.owner import execute_as_owner
from events.models import BehaviorEvent
from events.querysets import BehaviorEventQuerySet
from events.risk import baselines, marks
from events.tests.web import Web, warm
from tenancy import recent_keys
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant
from webhooks.models import Message, Webhook
from webhooks.vocabulary import EventName


@dataclass(frozen=True)
class World:
    """What most tests start from."""

    tenant: Tenant
    agent: Agent
    api: ApiClient

    def events(self) -> BehaviorEventQuerySet:
        """The tenant's events; other tests' may stand in the same table."""
        return BehaviorEvent.objects.for_tenant(self.tenant.id)

    def messages(self, event: str | None = None) -> QuerySet[Message]:
        """What the tenant's webhooks were told, of one event or at all."""
        told = Message.objects.filter(tenant=self.tenant)
        return told.filter(event=event) if event else told

    def listen(self) -> None:
        """Have a webhook for every event name."""
        made = {"secret": b"", "secret_hint": "", "created_at": now(), "updated_at": now()}
        Webhook.objects.create(
            tenant=self.tenant, url="https://example.com/hook", events=EventName.values, **made
        )

    def report(self, action_type: str = "api_call", **body: object) -> dict[str, object]:
        return {"agent_id": str(self.agent.id), "action_type": action_type, **body}


def make_world() -> World:
    tenant = make_tenant()
    return World(tenant, make_certified_agent(tenant), ApiClient().as_key(make_key(tenant)))


@pytest.fixture
def world() -> World:
    return make_world()


@pytest.fixture(scope="module")
def lasting_world(world_transaction: None) -> World:
    """One for all tests of a module whose `world` is `shared_world`: to make one takes longest."""
    return make_world()


@pytest.fixture
def shared_world(lasting_world: World) -> World:
    """The lasting one, with rows and memory that no earlier test has changed."""
    for module in (baselines, marks):
        module._kept.clear()
    agent = Agent.objects.select_related("tenant").get(id=lasting_world.agent.id)
    return World(agent.tenant, agent, lasting_world.api)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """No cached state survives its test."""
    yield
    for environment in Environment:
        with environments.use(environment):
            client = redis.client()
            for name in client.scan_iter(redis.key("risk", "*"), count=1_000):
                client.delete(name)


@pytest.fixture
def web() -> Iterator[Web]:
    """A web worker; for `committed` tests."""
    with closing(Web()) as server:
        yield server


@pytest.fixture
def key(world: World, web: Web) -> str:
    """A key of a caller who has sent events before."""
    secret = str(world.api.key)
    warm(web, secret, [world.agent])
    return secret


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a slow machine look no key up again."""
    monkeypatch.setattr(recent_keys, "FRESH_SECONDS", 60.0)


@pytest.fixture
def refused_session(committed: None) -> Iterator[str]:
    """A session id whose rows PostgreSQL refuses."""
    execute_as_owner(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION 'refused' USING ERRCODE = 'invalid_parameter_value'; END $$",
        "CREATE TRIGGER refuse BEFORE INSERT ON events_behaviorevent FOR EACH ROW"
        " WHEN (NEW.session_id = 'refused') EXECUTE FUNCTION refuse()",
    )
    yield "refused"
    execute_as_owner("DROP TRIGGER refuse ON events_behaviorevent", "DROP FUNCTION refuse()")


@pytest.fixture
def backend_dies_at(committed: None) -> Iterator[str]:
    """A session id whose row takes its connection down with it."""
    execute_as_owner(
        "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(5); RETURN NEW; END $$",
        "CREATE TRIGGER die BEFORE INSERT ON events_behaviorevent FOR EACH ROW"
        " WHEN (NEW.session_id = 'die') EXECUTE FUNCTION die()",
    )
    yield "die"
    connection.close()
    execute_as_owner("DROP TRIGGER die ON events_behaviorevent", "DROP FUNCTION die()")
