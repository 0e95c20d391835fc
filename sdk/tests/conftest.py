"""The service, an agent of it, and reporters that end with their test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentid import Client, Retries
from agentid.reporting import Reporter
from agents.models import Agent
from certificates.tests.factories import make_authorities, make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from delegation import services as delegation
from events.models import BehaviorEvent
from tenancy.tests.factories import make_key, make_tenant, make_test_key
from tests.served import Service, serving


@dataclass(frozen=True)
class Reported:
    """An agent, an API key of its tenant, and what the service has of it."""

    agent: Agent
    api_key: str

    def events(self) -> list[BehaviorEvent]:
        """The stored events, in the order they were stored in."""
        return list(BehaviorEvent.objects.filter(agent_id=self.agent.id).order_by("id"))

    def numbers(self) -> list[int]:
        """The numbers in the details of the stored events."""
        return [event.details["n"] for event in self.events()]


@pytest.fixture(scope="package")
def running_service(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    with django_db_blocker.unblock(), environments.use(Environment.LIVE):
        delegation.bootstrap(now=now())
    with django_db_blocker.unblock(), serving(tmp_path_factory.mktemp("service")) as found:
        yield found


@pytest.fixture
def service(committed: None, running_service: Service) -> Service:
    """The service, over rows that are committed: its tests run after those in transactions."""
    return running_service


@pytest.fixture
def reported(committed: None) -> Reported:
    with environments.use(Environment.LIVE):
        tenant = make_tenant()
        return Reported(make_certified_agent(tenant), make_key(tenant))


MakeReporter = Callable[..., Reporter]


@pytest.fixture
def make_reporter(reported: Reported, tmp_path: Path) -> Iterator[MakeReporter]:
    """Make reporters of the agent, all with one spool; they are closed at the end."""
    with ExitStack() as opened:

        def make(address: str, **more: Any) -> Reporter:
            more = {"api_key": reported.api_key, "agent_id": str(reported.agent.id), **more}
            reporter = Reporter(address, spool=tmp_path / "spool", **more)
            opened.callback(reporter.close, 0)
            return reporter

        yield make


@pytest.fixture
def client(service: Service, reported: Reported) -> Iterator[Client]:
    """A client of the tenant, without waits that a test would notice."""
    with Client(service.address, reported.api_key, retries=Retries(first_wait=0.01)) as found:
        yield found


@pytest.fixture
def sandbox_key(service: Service, reported: Reported) -> str:
    """A test key of the tenant, where the sandbox has its authorities and its token key."""
    with environments.use(Environment.TEST):
        make_authorities()
        delegation.bootstrap(now=now())
    return make_test_key(reported.agent.tenant)
