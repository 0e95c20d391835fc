"""A tenant with token keys, a client of it, and no directory that is kept."""

import pytest

from delegation.agent_keys import directory
from delegation.tests.conftest import empty_rings, tenant
from tenancy.tests.fixtures import client

__all__ = ["client", "empty_rings", "tenant"]


@pytest.fixture(autouse=True)
def no_directory_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory.known, "SECONDS", 0.0)
