"""A tenant with token keys, an agent, and a client that may ask for decisions."""

from collections.abc import Iterator

import pytest

from agents.models import Agent
from compliance.tests.client import ApiClient
from delegation.tests.factories import make_token_key
from delegation.token_keys import keyring
from gateway.tests.factories import make_permitted_agent
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant


@pytest.fixture(autouse=True)
def empty_rings() -> Iterator[None]:
    """No test inherits keys from another's rolled-back rows."""
    keyring.forget()
    yield
    keyring.forget()


@pytest.fixture
def tenant() -> Tenant:
    make_token_key()
    return make_tenant()


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    return make_permitted_agent(tenant)


@pytest.fixture
def asker(tenant: Tenant) -> ApiClient:
    return ApiClient(make_key(tenant, ["decisions:evaluate"]))
