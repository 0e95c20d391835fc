"""A client that may ask for decisions."""

import pytest

from compliance.tests.client import ApiClient
from tenancy.models import Tenant
from tenancy.tests.factories import make_key


@pytest.fixture
def asker(tenant: Tenant) -> ApiClient:
    return ApiClient(make_key(tenant, ["decisions:evaluate"]))
