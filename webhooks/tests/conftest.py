"""Webhook tests start from production's policy; those with a receiver on this machine ask for `loopback`."""

from typing import Any

import pytest

from compliance.core.clock import now
from compliance.tests.client import ApiClient
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant
from webhooks.models import Delivery


@pytest.fixture(autouse=True)
def strict(settings: Any) -> None:
    """HTTPS to public addresses only, whatever the process's environment says."""
    settings.WEBHOOK_ALLOW_HTTP = False
    settings.WEBHOOK_ALLOW_PRIVATE_ADDRESSES = False


@pytest.fixture
def loopback(strict: None, settings: Any) -> None:
    """Plain HTTP and private addresses allowed."""
    settings.WEBHOOK_ALLOW_HTTP = True
    settings.WEBHOOK_ALLOW_PRIVATE_ADDRESSES = True


@pytest.fixture
def tenant() -> Tenant:
    return make_tenant()


@pytest.fixture
def client(api: ApiClient, tenant: Tenant) -> ApiClient:
    """A client with a key of the tenant that has every scope."""
    return api.as_key(make_key(tenant))


@pytest.fixture
def empty_queue(committed: None) -> None:
    """Real transactions, and nothing due that other tests left behind."""
    Delivery.objects.filter(status__in=["pending", "in_flight"]).update(
        status="cancelled", next_attempt_at=None, lease=None, leased_until=None, completed_at=now()
    )
