"""The receiver's guide: its receiver runs against the real sender, its table names what is sent."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import settings

from compliance.outbound import http_client
from compliance.outbound.addresses import UrlPolicy
from compliance.outbound.http_client import Outcome, RequestOptions
from webhooks.openapi import EXAMPLE_DATA
from webhooks.sending import signature

GUIDE = (Path(settings.BASE_DIR) / "docs/webhooks.md").read_text()
OPTIONS = RequestOptions(UrlPolicy(allow_http=True, allow_private=True), timeout_seconds=10)
BODY = b'{"id":"1","event":"webhook.test","created_at":"2026-11-20T09:15:00Z","data":{}}'


def snippet() -> str:
    found = re.search(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    assert found is not None
    return found[1]


@contextmanager
def running(command: list[str], secret: str) -> Iterator[str]:
    """The receiver as a process of its own; its URL once it listens."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    environment = {**os.environ, "WEBHOOK_SECRET": secret, "PORT": str(port)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until_listening(port)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.kill()
        process.wait()


def wait_until_listening(port: int) -> None:
    until = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < until
            time.sleep(0.05)


def post(url: str, header: str | None, previous: str | None = None) -> Outcome:
    headers = {"Content-Type": "application/json"}
    if header is not None:
        headers["X-Service-Signature"] = header
    if previous is not None:
        headers["X-Service-Signature-Previous"] = previous
    return http_client.post(url, body=BODY, headers=headers, options=OPTIONS)


def test_receiver_takes_the_authentic_and_refuses_the_rest(tmp_path: Path) -> None:
    secret = signature.new_secret()
    script = tmp_path / "receiver.txt"
    script.write_text(snippet())

    with running([sys.executable, str(script)], secret) as url:
        authentic = post(url, signature.sign(BODY, secret))
        rotated = post(url, signature.sign(BODY, "whsec_new"), signature.sign(BODY, secret))
        refused = [
            post(url, header)
            for header in (
                None,
                "sha256=",
                signature.sign(BODY + b" ", secret),
                signature.sign(BODY, "whsec_"),
            )
        ]

    assert (authentic.response_status, rotated.response_status) == (204, 204)
    assert [outcome.response_status for outcome in refused] == [401] * 4


@pytest.mark.parametrize("event", EXAMPLE_DATA)
def test_guide_names_each_events_fields(event: str) -> None:
    (row,) = re.findall(rf"^\| `{re.escape(event)}` \|.*\| (.*) \|$", GUIDE, re.MULTILINE)

    assert re.findall(r"`(\w+)`", row) == list(EXAMPLE_DATA[event])
