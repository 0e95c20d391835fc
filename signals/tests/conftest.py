"""Signal tests start from production's policy; those with a receiver on this machine ask for `loopback`."""

from typing import Any

import pytest

from delegation.tests.conftest import tenant
from signals.models import Signal, Stream
from webhooks.tests.conftest import strict

__all__ = ["strict", "tenant"]


@pytest.fixture
def loopback(strict: None, settings: Any) -> None:
    """Plain HTTP and private addresses allowed."""
    settings.WEBHOOK_ALLOW_HTTP = True
    settings.WEBHOOK_ALLOW_PRIVATE_ADDRESSES = True
    settings.SIGNALS_TIMEOUT_SECONDS = 30.0


@pytest.fixture
def empty_streams(committed: None) -> None:
    """Real transactions, and no stream that other tests left behind."""
    Signal.objects.all().delete()
    Stream.objects.all().delete()
