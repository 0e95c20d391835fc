"""A tenant with token keys in either environment, and a key that may stop, release and read."""

import pytest

from compliance.tests.client import ApiClient
from delegation.tests.conftest import empty_rings, tenant
from tenancy.models import Tenant
from tenancy.tests.factories import make_key

__all__ = ["client", "empty_rings", "tenant"]

SCOPES = ["certificates:revoke", "agents:reinstate", "agents:read"]


@pytest.fixture
def client(api: ApiClient, tenant: Tenant) -> ApiClient:
    return api.as_key(make_key(tenant, SCOPES))
