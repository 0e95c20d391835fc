"""A database that refuses every statement, as a dead server does."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connections

from compliance.stores import sql


class Broken:
    """Refuses every query, as a connection to a dead server does."""

    def __call__(self, *args: Any) -> Any:
        raise OperationalError("server closed the connection unexpectedly")


@pytest.fixture
def no_database(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both databases refuse, over Django's cursors and over the driver's."""
    monkeypatch.setattr(sql, "connected", Broken())
    with connections["default"].execute_wrapper(Broken()), connections["test"].execute_wrapper(Broken()):
        yield


def refused_by_the_database(answer: Any) -> None:
    """Check that an endpoint of OAuth's answered 503 in its form."""
    assert answer.status_code == 503
    assert answer.json()["error"] == "temporarily_unavailable"
