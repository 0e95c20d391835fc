"""What happens to the whole stack when a part of it dies. The tests run in the order of the file."""

import re
import select
import socket
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
import requests

from compliance.tests.stack import HEAL_SECONDS, Stack, processes_of
from compliance.tests.waiting import eventually, kill

pytestmark = [pytest.mark.slow, pytest.mark.drill]


def assert_unavailable(answer: requests.Response) -> None:
    assert answer.status_code == 503, answer.text
    assert list(answer.json()) == ["error"]
    assert int(answer.headers["Retry-After"]) >= 1


def test_stack_starts_and_plays_the_scenario(stack: Stack) -> None:
    told = stack.started.stdout + stack.started.stderr

    assert "steps as specified" in told
    assert "✗" not in told
    assert stack.call("GET", "/health/ready", key=None).json()["status"] == "ok"


def test_senders_who_stall_leave_the_service_to_others(stack: Stack) -> None:
    head = "POST /v1/delegation/verify HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    address = urlsplit(stack.exports["BASE_URL"])

    def another_is_served_meanwhile() -> bool:
        """Return whether one is while no sender has been turned away: a slow machine may take longer."""
        for _ in range(60):
            sender = held.enter_context(socket.create_connection((address.hostname, address.port)))
            sender.sendall(f"{head}Content-Length: 500\r\n\r\n{{".encode())
            senders.append(sender)
        assert stack.register().status_code == 201
        return not select.select(senders[-60:], [], [], 0)[0]

    senders: list[socket.socket] = []
    with ExitStack() as held:
        assert eventually(another_is_served_meanwhile)
        assert senders[-1].recv(4096).startswith(b"HTTP/1.1 408")


def test_redis_dies_and_the_api_goes_on(stack: Stack) -> None:
    agent = stack.new_agent()
    serial = stack.certify(agent).json()["data"]["serial_number"]
    stack.stop("redis")

    registered, verified = stack.register(), stack.call("GET", f"/v1/verify/{serial}", key=None)
    event = stack.call("POST", "/v1/events", {"agentId": agent, "actionType": "api_call"})
    ready = stack.call("GET", "/health/ready", key=None)
    stack.start("redis")

    assert (registered.status_code, verified.status_code, event.status_code) == (201, 200, 201)
    assert (ready.status_code, ready.json()["checks"]["redis"]) == (503, "unavailable")
    assert eventually(stack.is_ready, seconds=HEAL_SECONDS)


def test_postgresql_dies_and_comes_back(stack: Stack) -> None:
    stack.stop("postgres")

    down = [
        stack.register(),
        stack.call("GET", "/v1/agents"),
        stack.call("GET", "/v1/verify/" + "4" * 40, key=None),
        stack.call("GET", "/v1/crl", key=None),
    ]
    stack.start("postgres")

    for answer in down:
        assert_unavailable(answer)
    assert eventually(lambda: stack.register().status_code == 201, seconds=HEAL_SECONDS)
    assert all(stack.register().status_code == 201 for _ in range(20))


def test_killed_data_servers_are_brought_up_by_another_run(stack: Stack) -> None:
    agent = stack.new_agent()
    servers = re.findall(r"(?:postgres|redis) +up +pid (\d+)", stack.run("status").stdout)
    assert len(servers) == 2
    kill(*map(int, servers))
    down = stack.register()

    again = stack.run("--detach")

    assert_unavailable(down)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "already up" in again.stdout + again.stderr
    assert stack.is_ready()
    assert eventually(lambda: stack.certify(agent).status_code == 201, seconds=HEAL_SECONDS)


def test_hsm_dies_and_comes_back(stack: Stack) -> None:
    agent = stack.new_agent()
    away = stack.tokens.with_name("away")
    stack.tokens.rename(away)
    here = away.with_name("tokens")

    down = [stack.certify(agent) for _ in range(4)]
    verified = stack.call("GET", "/v1/verify/" + "4" * 40, key=None)
    away.rename(here)

    for answer in down:
        assert_unavailable(answer)
    assert "KMS" in down[0].json()["error"]
    assert verified.status_code == 404
    assert eventually(lambda: stack.certify(agent).status_code in (201, 409), seconds=HEAL_SECONDS)
    assert eventually(stack.is_ready, seconds=HEAL_SECONDS)


def test_killed_web_workers_are_replaced_and_nobody_else_gets_the_port(stack: Stack) -> None:
    address = urlsplit(stack.exports["BASE_URL"])
    kill(*processes_of(stack, "gunicorn"))

    with pytest.raises(OSError, match="in use"):
        socket.create_server((str(address.hostname), address.port))

    def answers() -> bool:
        try:
            return stack.register().status_code == 201
        except requests.ConnectionError:
            return False

    assert eventually(answers, seconds=30)


def test_scenario_plays_again_after_all_that(stack: Stack) -> None:
    played = stack.run("demo")

    assert played.returncode == 0, played.stdout + played.stderr


def test_stopped_stack_starts_again_over_its_own_data(stack: Stack) -> None:
    agent = stack.new_agent()
    stack.run("stop")

    again = stack.run("--detach", "--no-demo")

    assert again.returncode == 0, again.stdout[-4000:] + again.stderr[-4000:]
    assert "steps as specified" not in again.stdout
    stack.exports["BASE_URL"] = re.search(
        r"BASE_URL=\S*?(http\S+?)['\"]?$", stack.run("env").stdout, re.MULTILINE
    )[1]  # type: ignore[index]
    assert stack.call("GET", f"/v1/agents/{agent}").status_code == 200
