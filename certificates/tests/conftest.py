"""A tenant, its client, and the CAs."""

import pytest

from certificates.models import CertificateAuthority
from certificates.tests.factories import make_authorities
from compliance.tests.client import ApiClient
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant


@pytest.fixture
def tenant() -> Tenant:
    return make_tenant("Example Trading GmbH")


@pytest.fixture
def client(api: ApiClient, tenant: Tenant) -> ApiClient:
    return api.as_key(make_key(tenant))


@pytest.fixture
def authority() -> CertificateAuthority:
    """The issuing CA of the live environment."""
    return make_authorities()
