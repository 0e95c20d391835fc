"""Signal tests start from production's policy; those with a receiver on this machine ask for `loopback`."""

from typing import Any

import pytest

from compliance.core import environments
from compliance.core.environments import Environment
from delegation.tests.factories import make_token_key
from signals.models import Signal, Stream
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant


@pytest.fixture(autouse=True)
def strict(settings: Any) -> None:
    settings.WEBHOOK_ALLOW_HTTP = False
    settings.WEBHOOK_ALLOW_PRIVATE_ADDRESSES = False


@pytest.fixture
def loopback(strict: None, settings: Any) -> None:
    """Plain HTTP and private addresses allowed."""
    settings.WEBHOOK_ALLOW_HTTP = True
    settings.WEBHOOK_ALLOW_PRIVATE_ADDRESSES = True
    settings.SIGNALS_TIMEOUT_SECONDS = 30.0


@pytest.fixture
def tenant() -> Tenant:
    """A tenant, with a token key in either environment."""
    made = make_tenant()
    make_token_key()
    with environments.use(Environment.TEST):
        make_token_key()
    return made


@pytest.fixture
def empty_streams(committed: None) -> None:
    """Real transactions, and no stream that other tests left behind."""
    Signal.objects.all().delete()
    Stream.objects.all().delete()
