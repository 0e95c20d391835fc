"""The image, built on a root file system made here, and run read-only and without rights."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from compliance.localdev.ports import free_port
from compliance.tests.nodes import node_environment
from compliance.tests.waiting import eventually
from deploy.tests.containers import SERVICE, Engine

STARTS_WITHIN = 120.0  # seconds
FIND_LEFTOVERS = "find /opt/service/app -name 'compiled-*' -o -type d -name tests; which cc || true"

pytestmark = [pytest.mark.drill, pytest.mark.long]


@pytest.fixture
def container(django_db_setup: None, engine: Engine) -> Iterator[int]:
    """The port of a running web server on the databases of the suite."""
    port = free_port()
    given = ("DATABASE_URL", "TEST_DATABASE_URL", "REDIS_URL", "SECRET_KEY", "ENCRYPTION_KEYS")
    environment = {name: value for name, value in node_environment().items() if name in given}
    hidden = [word for name in given for word in ("--env", name)]
    engine(
        *("run", "--detach", "--name", "drill", "--network", "host", "--read-only"),
        *("--tmpfs", "/tmp:mode=1777", "--cap-drop", "all", "--security-opt", "no-new-privileges", *hidden),
        *("--env", f"PORT={port}", "--env", "WEB_WORKERS=1", SERVICE),
        **environment,
    )
    yield port
    engine.attempt("rm", "--force", "--time", "10", "drill")


def answer(port: int, path: str) -> requests.Response | None:
    try:
        return requests.get(f"http://127.0.0.1:{port}{path}", timeout=10)
    except requests.ConnectionError:
        return None


def test_image_serves_without_rights_on_a_read_only_root(container: int, engine: Engine) -> None:
    port = container

    assert eventually(lambda: answer(port, "/health/live") is not None, seconds=STARTS_WITHIN)
    live, ready = answer(port, "/health/live"), answer(port, "/health/ready")

    assert live is not None
    assert live.json() == {"status": "ok"}
    assert ready is not None
    checks = ready.json()["checks"]
    assert (checks["database_live"], checks["database_test"], checks["redis"]) == ("ok", "ok", "ok")
    engine("healthcheck", "run", "drill")
    status = engine("exec", "drill", "cat", "/proc/1/status")
    assert re.search(r"^Uid:\s+10001\s+10001", status, re.MULTILINE)
    assert re.search(r"^CapEff:\s+0+$", status, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\s+1$", status, re.MULTILINE)
    refused = engine.attempt("exec", "drill", "touch", "/opt/service/app/new")
    assert "Read-only file system" in refused.stderr


def test_image_has_the_compiled_scorer_and_no_tests(engine: Engine) -> None:
    looked = engine.attempt("run", "--rm", "--network", "host", SERVICE, "sh", "-c", FIND_LEFTOVERS)

    assert looked.returncode == 0, looked.stderr
    assert [Path(line).name.partition("-")[0] for line in looked.stdout.split()] == ["compiled"]
