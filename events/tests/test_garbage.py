"""What a request leaves behind: nothing that waits for the garbage collector."""

import gc
from collections.abc import Iterator

import pytest
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.test import RequestFactory

from compliance.api.answers import Answer
from compliance.serving.wsgi import begin
from compliance.wsgi import application
from events.tests.conftest import World


@pytest.fixture
def lasting_connections() -> Iterator[None]:
    """The test's transaction outlives its requests."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.mark.usefixtures("lasting_connections")
@pytest.mark.parametrize(("count", "status"), [(500, 200), (1_001, 400)])
def test_answered_batch_leaves_nothing_to_the_garbage_collector(
    world: World, count: int, status: int
) -> None:
    agent_id = str(world.agent.id)
    events = [
        {"agent_id": agent_id, "action_type": "api_call", "details": {"inner": {"place": place}}}
        for place in range(count)
    ]
    headers = {"Authorization": f"Bearer {world.api.key}"}
    request = RequestFactory().post(
        "/v1/events/batch", {"events": events}, "application/json", headers=headers
    )
    gc.collect()
    gc.disable()

    try:
        answer = begin(application, request.environ)
        circular = gc.collect()
    finally:
        gc.enable()

    assert isinstance(answer, Answer)
    assert answer.status == status
    assert circular < count
