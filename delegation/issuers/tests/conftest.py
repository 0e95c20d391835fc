"""Providers on this machine, and nothing fetched by the test before."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from delegation.issuers import fetching
from delegation.issuers.tests.providers import Held, Provider


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
    settings.TRUSTED_ISSUER_TIMEOUT_SECONDS = 30.0
    with Provider.serving() as found:
        yield found


@pytest.fixture
def held(provider: Provider, settings: Any) -> Iterator[Held]:
    settings.TRUSTED_ISSUER_TIMEOUT_SECONDS = 30.0
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        found = Held(listener)
        yield found
        found.release()
