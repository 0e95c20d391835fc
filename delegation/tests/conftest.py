"""Token keys in the real tokens of the test run, made once: generating is the slow part."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connections

from agents.models import Agent
from agents.tests.factories import make_agent
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.stores import sql
from delegation.issued import status_lists
from delegation.tests.factories import make_token_key
from delegation.token_keys import keyring
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant
from tenancy.tests.fixtures import client

__all__ = ["client"]


@pytest.fixture(autouse=True)
def empty_rings() -> Iterator[None]:
    """No test inherits keys from another's rolled-back rows."""
    keyring.forget()
    yield
    keyring.forget()


@pytest.fixture(autouse=True)
def no_list_at_hand() -> Iterator[None]:
    status_lists.forget()
    yield
    status_lists.forget()


@pytest.fixture
def tenant() -> Tenant:
    """A tenant, with a token key in either environment."""
    made = make_tenant()
    make_token_key()
    with environments.use(Environment.TEST):
        make_token_key()
    return made


@pytest.fixture
def no_database(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both databases refuse every query, over Django's cursors and over the driver's, as dead servers do."""

    def refuse(*args: Any) -> Any:
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(sql, "connected", refuse)
    with connections["default"].execute_wrapper(refuse), connections["test"].execute_wrapper(refuse):
        yield


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    return make_agent(tenant)
