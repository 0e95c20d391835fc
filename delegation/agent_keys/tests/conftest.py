"""A tenant with a token key, and a client of it."""

import pytest

from compliance.tests.client import ApiClient
from delegation.agent_keys import directory
from delegation.tests.factories import make_token_key
from delegation.token_keys import keyring
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant


@pytest.fixture(autouse=True)
def no_directory_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory.known, "SECONDS", 0.0)


@pytest.fixture
def tenant() -> Tenant:
    keyring.forget()
    make_token_key()
    return make_tenant()


@pytest.fixture
def client(api: ApiClient, tenant: Tenant) -> ApiClient:
    """A client with a key of the tenant that may do all."""
    return api.as_key(make_key(tenant))
