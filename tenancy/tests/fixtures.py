"""Fixtures that the conftests of rooms take over; pytest-django has another `client`."""

import pytest

from compliance.tests.client import ApiClient
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant


@pytest.fixture
def tenant() -> Tenant:
    return make_tenant()


@pytest.fixture
def client(api: ApiClient, tenant: Tenant) -> ApiClient:
    """A client with a key of the tenant that may do all."""
    return api.as_key(make_key(tenant))
