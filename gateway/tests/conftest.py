"""The tenant's gateway."""

import pytest

from gateway.tests.factories import Gateway
from tenancy.models import Tenant


@pytest.fixture
def gateway(tenant: Tenant) -> Gateway:
    return Gateway(tenant)
