"""`/health/ready` while a dependency hangs."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest

from compliance.api import health
from compliance.api.health import Readiness
from compliance.tests.client import ApiClient


class Dependency:
    """Answers at once at first, then only when it is let go."""

    def __init__(self, *, answers: int) -> None:
        self.answers = answers
        self.is_asked = Event()
        self.let_go = Event()

    def check(self) -> None:
        if self.answers:
            self.answers -= 1
            return
        self.is_asked.set()
        self.let_go.wait()


@contextmanager
def asked_elsewhere(readiness: Readiness, dependency: Dependency) -> Iterator[None]:
    """Another thread asks, and waits for the dependency until the block ends."""
    thread = Thread(target=readiness.outcome)
    thread.start()
    try:
        dependency.is_asked.wait()
        yield
    finally:
        dependency.let_go.set()
        thread.join()


@pytest.fixture(autouse=True)
def nothing_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "OUTCOME_SECONDS", 0.0)


def readiness_of(monkeypatch: pytest.MonkeyPatch, dependency: Dependency) -> Readiness:
    readiness = Readiness({"hanging": dependency.check, "sound": lambda: None})
    monkeypatch.setattr(health, "readiness", readiness)
    return readiness


@pytest.mark.parametrize(
    ("seconds", "status", "found"), [(60.0, 200, "ok"), (0.0, 503, "unavailable")], ids=["recent", "old"]
)
def test_last_outcome_serves_for_a_while_only(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch, seconds: float, status: int, found: str
) -> None:
    monkeypatch.setattr(health, "MEANWHILE_SECONDS", seconds)
    dependency = Dependency(answers=1)
    readiness = readiness_of(monkeypatch, dependency)
    assert api.get("/health/ready").status_code == 200

    with asked_elsewhere(readiness, dependency):
        meanwhile = api.get("/health/ready")

    assert meanwhile.status_code == status
    assert meanwhile.json()["checks"] == {"hanging": found, "sound": found}
    assert api.get("/health/ready").status_code == 200


def test_first_outcome_is_not_waited_for_without_end(api: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "MEANWHILE_SECONDS", 0.0)
    dependency = Dependency(answers=0)

    with asked_elsewhere(readiness_of(monkeypatch, dependency), dependency):
        meanwhile = api.get("/health/ready")

    assert meanwhile.status_code == 503
    assert set(meanwhile.json()["checks"].values()) == {"unavailable"}
