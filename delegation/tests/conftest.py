"""Token keys in the real tokens of the test run, made once: generating is the slow part."""

from collections.abc import Iterator

import pytest

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tenancy.models import Tenant
from compliance.tenancy.tests.factories import make_tenant
from delegation.tests.factories import make_token_key
from delegation.token_keys import keyring


@pytest.fixture(autouse=True)
def empty_rings() -> Iterator[None]:
    """No test inherits keys from another's rolled-back rows."""
    keyring.forget()
    yield
    keyring.forget()


@pytest.fixture
def tenant() -> Tenant:
    """A tenant, with a token key in either environment."""
    made = make_tenant()
    make_token_key()
    with environments.use(Environment.TEST):
        make_token_key()
    return made
