"""A worker's requests, without its server."""

from collections.abc import Iterator

import pytest

from compliance.tests.web import Worker


@pytest.fixture
def web() -> Iterator[Worker]:
    server = Worker()
    yield server
    server.close()
