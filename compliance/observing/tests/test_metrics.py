"""Metrics: those of several processes are summed, survive a kill, and are shown to who has the token."""

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.test import Client, RequestFactory
from django.urls import resolve
from prometheus_client import Histogram
from prometheus_client.parser import text_string_to_metric_families
from pytest_django.fixtures import Settings

from compliance.api.endpoint import Endpoint
from compliance.observing import metrics, metrics_server
from compliance.observing.middleware import route_of
from compliance.observing.tests.reading import sample
from compliance.serving.endpoints import ENDPOINTS

TOKEN = "a-token-of-the-tests"
COUNT = """
import os, django; django.setup()
from compliance.observing import metrics
assert metrics.is_shared, metrics.problem
metrics.gather()
for _ in range(3):
    metrics.note_answer(method="GET", route="/v1/x", status=200, seconds=0.002)
metrics.flush()
metrics.STRIKES.labels("live").inc()
if os.fork() == 0:
    metrics.STRIKES.labels("live").inc()
    os.kill(os.getpid(), 9)
os.wait()
os.kill(os.getpid(), 9)
"""
SHOW = """
import sys, django; django.setup()
from compliance.observing import metrics_server
sys.stdout.buffer.write(metrics_server.exposed())
"""


def run(script: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "METRICS_DIR": str(folder)}
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=environment, cwd=settings.BASE_DIR, capture_output=True, check=False)


def test_counts_of_killed_processes_are_summed(tmp_path: Path) -> None:
    folder = tmp_path / "metrics"

    ended = [run(COUNT, folder).returncode for _ in range(2)]
    text = run(SHOW, folder).stdout.decode()

    assert ended == [-signal.SIGKILL] * 2
    assert sample(text, "compliance_strikes_total", environment="live") == 4
    answered = {"method": "GET", "route": "/v1/x"}
    assert sample(text, "compliance_http_requests_total", status="200", **answered) == 6
    timed = {"class": "2xx", **answered}
    assert sample(text, "compliance_http_request_seconds_count", **timed) == 6
    assert sample(text, "compliance_http_request_seconds_bucket", le="0.001", **timed) == 0
    assert sample(text, "compliance_http_request_seconds_bucket", le="0.0025", **timed) == 6
    assert sample(text, "compliance_http_request_seconds_sum", **timed) == pytest.approx(0.012)


def test_folder_that_cannot_be_used_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    shown = run(SHOW, tmp_path / "file")

    assert shown.returncode == 0
    assert b"compliance_strikes" in shown.stdout


def test_rare_things_are_shown_before_they_happen(tmp_path: Path) -> None:
    text = run(SHOW, tmp_path / "metrics").stdout.decode()

    for environment in ("live", "test"):
        assert sample(text, "compliance_agents_stopped_total", environment=environment) == 0
        assert sample(text, "compliance_revocation_delay_seconds_count", environment=environment) == 0


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda one: f"{one.method} {one.route}")
def test_both_entrances_of_an_endpoint_have_one_route(endpoint: Endpoint[Any, Any]) -> None:
    request = RequestFactory().generic(endpoint.method, endpoint.route.replace("{}", "x"))
    request.resolver_match = resolve(request.path)

    assert route_of(request) == endpoint.route


def test_made_up_methods_are_one_label() -> None:
    for number in range(50):
        metrics.note_answer(method=f"BREW{number}", route="/v1/brew", status=405, seconds=0.0)

    shown = metrics_server.exposed().decode()

    assert (
        sample(shown, "compliance_http_requests_total", method="other", route="/v1/brew", status="405") == 50
    )
    assert "BREW" not in shown


def samples(metric: Histogram, *labels: str) -> dict[str, float]:
    """The histogram's values with these labels, by the end of their name and the bound of their bucket."""
    found = metric.labels(*labels)._child_samples()
    return {one.name + one.labels.get("le", ""): one.value for one in found}


def test_times_of_threads_are_gathered_until_the_loop_flushes(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"test-{uuid4()}"
    monkeypatch.setattr(metrics, "gathered", waiting := metrics.Gathered())

    @metrics.timed(metrics.REDIS_SECONDS, metrics.REDIS_ERRORS, name)
    def trip() -> None:
        """Take next to no time."""

    with ThreadPoolExecutor(4) as threads:
        for _ in range(20):
            threads.submit(trip)
    before = samples(metrics.REDIS_SECONDS, name)["_count"]
    kept = len(waiting.sums) + len(waiting.slots)
    metrics.flush()

    assert kept <= 1 + len(metrics.QUICK) + 1, "sums, not values"
    assert (before, samples(metrics.REDIS_SECONDS, name)["_count"]) == (0, 20)


def test_values_are_counted_in_the_bucket_of_their_bound() -> None:
    name = f"test-{uuid4()}"
    values = (0.0, 0.0001, 0.00011, 4.0, 7.0)
    for value in values:
        metrics.REDIS_SECONDS.labels(f"{name}-library").observe(value)
        metrics.add(metrics.labelled(metrics.REDIS_SECONDS, name), value)

    found = samples(metrics.REDIS_SECONDS, name)

    expected = samples(metrics.REDIS_SECONDS, f"{name}-library")
    assert found | {"_created": 0} == expected | {"_created": 0}


def test_block_that_raises_is_timed_and_counted() -> None:
    name = f"test-{uuid4()}"

    with pytest.raises(ZeroDivisionError), metrics.timed(metrics.REDIS_SECONDS, metrics.REDIS_ERRORS, name):
        raise ZeroDivisionError

    assert samples(metrics.REDIS_SECONDS, name)["_count"] == 1
    assert metrics.REDIS_ERRORS.labels(name)._value.get() == 1


def has_ipv6_loopback() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.django_db(databases=["default", "test", "default_auditor", "test_auditor"])
class TestView:
    @pytest.fixture(autouse=True)
    def shared(self, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(metrics, "is_shared", True)
        monkeypatch.setattr(metrics, "folder", str(tmp_path))
        settings.METRICS_TOKEN = TOKEN

    def test_shows_both_environments_to_who_has_the_token(self, client: Client) -> None:
        answer = client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"})

        assert answer.status_code == 200
        assert answer["content-type"] == metrics_server.CONTENT_TYPE
        text = answer.content.decode()
        names = {family.name for family in text_string_to_metric_families(text)}
        assert "compliance_webhooks_due" in names
        for environment in ("live", "test"):
            assert sample(text, "compliance_part_up", environment=environment, part="webhooks") == 1

    @pytest.mark.parametrize(
        "header", [None, "", "Bearer", "Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer é"]
    )
    def test_401_without_the_token(self, client: Client, header: str | None) -> None:
        answer = client.get("/metrics", headers={} if header is None else {"authorization": header})

        assert answer.status_code == 401
        assert answer.json() == {"error": "Missing or invalid token"}

    def test_404_where_no_token_is_set(self, client: Client, settings: Settings) -> None:
        settings.METRICS_TOKEN = ""

        for header in ("Bearer ", "Bearer x"):
            assert client.get("/metrics", headers={"authorization": header}).status_code == 404

    @pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
    def test_other_methods_are_refused_in_the_envelope(self, method: str) -> None:
        browser = Client(enforce_csrf_checks=True)

        answer = browser.generic(method, "/metrics", headers={"authorization": f"Bearer {TOKEN}"})

        assert (answer.status_code, answer["allow"]) == (405, "GET, HEAD")
        assert answer.json() == {"error": "Method not allowed"}

    def test_own_address_serves_with_the_token(self, settings: Settings) -> None:
        settings.METRICS_LISTEN = "127.0.0.1:0"
        server = metrics_server.start()
        assert server is not None
        url = f"http://127.0.0.1:{server.server_port}"
        try:
            asked = urllib.request.Request(f"{url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
            with urllib.request.urlopen(asked, timeout=30) as answer:
                assert answer.status == 200
            for path, status in (("/metrics", 401), ("/", 404)):
                with pytest.raises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(url + path, timeout=30)
                assert refused.value.code == status
                refused.value.close()
        finally:
            server.shutdown()
            server.server_close()

    def test_own_address_refuses_other_methods_without_a_page(self, settings: Settings) -> None:
        settings.METRICS_LISTEN = "127.0.0.1:0"
        server = metrics_server.start()
        assert server is not None
        try:
            for method in ("HEAD", "POST", "PUT", "<b>"):
                asked = HTTPConnection("127.0.0.1", server.server_port, timeout=30)
                asked.request(method, "/metrics")
                answer = asked.getresponse()
                assert (answer.status, answer.read()) == (501, b"")
                assert "Python" not in answer.headers["Server"]
                asked.close()
        finally:
            server.shutdown()
            server.server_close()

    @pytest.mark.skipif(not has_ipv6_loopback(), reason="no IPv6 loopback here")
    def test_own_address_may_be_of_ipv6(self, settings: Settings) -> None:
        settings.METRICS_LISTEN = "[::1]:0"
        server = metrics_server.start()
        assert server is not None
        try:
            assert server.server_address[0] == "::1"
        finally:
            server.shutdown()
            server.server_close()

    @pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "nonsense", "127.0.0.1:99999"])
    def test_open_or_malformed_address_is_not_served(self, settings: Settings, address: str) -> None:
        settings.METRICS_LISTEN, settings.METRICS_TOKEN = address, ""

        assert metrics_server.start() is None
