"""Webhook tests start from production's policy; those with a receiver on this machine ask for `loopback`."""

from typing import Any

import pytest


@pytest.fixture(autouse=True)
def strict(settings: Any) -> None:
    """HTTPS to public addresses only, whatever the process's environment says."""
    settings.WEBHOOK_ALLOW_HTTP = False
    settings.WEBHOOK_ALLOW_PRIVATE_ADDRESSES = False


@pytest.fixture
def loopback(strict: None, settings: Any) -> None:
    """Plain HTTP and private addresses allowed, and no test waits 30 s."""
    settings.WEBHOOK_ALLOW_HTTP = True
    settings.WEBHOOK_ALLOW_PRIVATE_ADDRESSES = True
    settings.WEBHOOK_TIMEOUT_SECONDS = 2.0
