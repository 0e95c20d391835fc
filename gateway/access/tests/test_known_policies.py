"""Policies that a process keeps for a moment."""

import pytest

from agents.models import Agent
from compliance.tests.client import ApiClient
from gateway.access.tests.factories import ONE, ask, make_policy
from tenancy.models import Tenant

pytestmark = pytest.mark.usefixtures("committed")


def test_change_counts_at_once_in_the_same_process(asker: ApiClient, tenant: Tenant, agent: Agent) -> None:
    before = asker.post(ONE, ask(agent)).json()["context"]["outcome"]
    make_policy(tenant, always_ask=["read"])
    after = asker.post(ONE, ask(agent)).json()["context"]["outcome"]

    assert (before, after) == ("allow", "ask")
