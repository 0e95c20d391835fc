"""A reporter with the running service."""

from pathlib import Path
from typing import Any

import pytest

from agentid import ConfigurationError
from agentid.reporting import Rejected, Reporter
from tests.conftest import MakeReporter, Reported
from tests.served import Service


def test_events_arrive_once_and_in_order(
    service: Service, reported: Reported, make_reporter: MakeReporter
) -> None:
    reporter = make_reporter(service.address)

    taken = [reporter.report("data_access", {"n": number}) for number in range(1200)]

    assert all(taken)
    assert reporter.flush(60)
    assert reported.numbers() == list(range(1200))
    found = reporter.statistics()
    assert (found.reported, found.sent) == (1200, 1200)
    assert (found.queued, found.spooled, found.rejected, found.dropped, found.unsettled) == (0,) * 5


def test_rejected_event_is_handed_back_and_its_neighbours_arrive(
    service: Service, reported: Reported, make_reporter: MakeReporter
) -> None:
    handed: list[Rejected] = []
    reporter = make_reporter(service.address, on_rejected=handed.append)
    deep: Any = {"n": 1}
    for _ in range(32):
        deep = {"in": deep}

    reporter.report("data_access", {"n": 0})
    reporter.report("data_access", deep)
    reporter.report("data_access", {"n": 2})

    assert reporter.flush(30)
    assert reported.numbers() == [0, 2]
    assert [(found.status, found.error) for found in handed] == [
        (400, "JSON is nested deeper than 32 levels")
    ]
    assert handed[0].event["details"] == deep
    assert reporter.statistics().rejected == 1


@pytest.mark.parametrize("agent_id", ["../elsewhere", "/elsewhere", "..", ".", "", "a/b", "a\0"])
def test_spool_of_an_agent_is_nowhere_else(agent_id: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        Reporter("http://127.0.0.1:9", "key", agent_id, spool=tmp_path / "spool")

    assert list(tmp_path.iterdir()) == []


def test_close_leaves_no_file_behind(
    service: Service, reported: Reported, make_reporter: MakeReporter, tmp_path: Path
) -> None:
    reporter = make_reporter(service.address)
    reporter.report("api_call", {"n": 1})

    assert reporter.close(30)

    assert list((tmp_path / "spool" / str(reported.agent.id)).iterdir()) == []
    assert reporter.report("api_call", {"n": 2}) is False
