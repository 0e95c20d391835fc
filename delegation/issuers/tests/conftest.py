"""Providers on this machine, and nothing fetched by the test before."""

from collections.abc import Iterator
from typing import Any

import pytest

from delegation.issuers import fetching
from delegation.issuers.tests.providers import Provider


@pytest.fixture(autouse=True)
def nothing_fetched(settings: Any) -> Iterator[None]:
    """Production's policy, and an empty cache."""
    settings.TRUSTED_ISSUER_ALLOW_HTTP = False
    settings.TRUSTED_ISSUER_ALLOW_PRIVATE_ADDRESSES = False
    fetching.forget()
    yield
    fetching.forget()


@pytest.fixture
def provider(nothing_fetched: None, settings: Any) -> Iterator[Provider]:
    """A provider on loopback, which may be asked."""
    settings.TRUSTED_ISSUER_ALLOW_HTTP = True
    settings.TRUSTED_ISSUER_ALLOW_PRIVATE_ADDRESSES = True
    settings.TRUSTED_ISSUER_TIMEOUT_SECONDS = 2.0
    with Provider.serving() as found:
        yield found
