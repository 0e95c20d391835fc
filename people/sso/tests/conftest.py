"""The providers, and a single sign-on that remembers nothing of the test before."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings as configured

from people.sso import provider as published
from people.sso.tests.forging import Forger
from people.sso.tests.providers import Toolkit, configure, running_toolkit


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toolkit]:
    with running_toolkit(tmp_path_factory.mktemp("provider"), configured.BASE_URL) as found:
        yield found


@pytest.fixture(autouse=True)
def fresh(fast_passwords: None) -> None:
    """Nothing fetched, no failure counted, and passwords that cost nothing to check."""
    published._providers.clear()
    published._key_sets.clear()
    published.circuit.succeeded()


@pytest.fixture
def provider(running: Toolkit, settings: Any) -> Toolkit:
    """The real provider, configured, which adds no claims."""
    running.add()
    configure(settings, running.issuer)
    return running


@pytest.fixture
def forger(settings: Any) -> Iterator[Forger]:
    """A provider of the test's own, configured, that says whatever the test wants."""
    with Forger.serving() as found:
        configure(settings, found.issuer)
        yield found
