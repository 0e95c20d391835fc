"""The plain Django peer starts and reads a row."""

import os
import subprocess

import httpx
from django.db import connections

from agents.tests.factories import make_agent
from bench.harness import web
from certificates.tests.factories import make_certificate
from compliance.localdev.ports import free_port
from compliance.localdev.servers import processes
from tenancy.tests.factories import make_tenant


def test_plain_django_reads_a_row(committed: None) -> None:
    serial = make_certificate(make_agent(make_tenant())).serial_number
    settings, port = connections["default"].settings_dict, free_port()
    host = f"{settings['HOST']}:{settings['PORT']}"
    environment = os.environ | {
        "DATABASE_URL": f"postgres://{settings['USER']}:{settings['PASSWORD']}@{host}/{settings['NAME']}",
        "DJANGO_SETTINGS_MODULE": "bench.rulers.plain.settings",
    }
    command = web.plain_django_command(port, workers="1", threads="2")
    with subprocess.Popen(command, env=environment) as process:
        try:
            processes.wait_until(
                lambda: process.poll() is not None or web.answers(port, "/"), seconds=web.READY_SECONDS
            )
            answer = httpx.get(f"http://127.0.0.1:{port}/row/{serial}")
        finally:
            process.terminate()
            process.wait(10)

    assert answer.json()["data"]["serial_number"] == serial
