"""A tenant with token keys, and an agent of it."""

import pytest

from agents.models import Agent
from delegation.tests.conftest import empty_rings
from delegation.tests.factories import make_token_key
from gateway.tests.factories import make_permitted_agent
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant

__all__ = ["empty_rings"]


@pytest.fixture
def tenant() -> Tenant:
    make_token_key()
    return make_tenant()


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    return make_permitted_agent(tenant)
