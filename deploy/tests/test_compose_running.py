"""The installation of docs/deployment.md on one machine, made by its commands and run by podman."""

import json
import os
import re
import signal
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import requests
from cryptography import x509

from compliance.tests.waiting import eventually
from deploy.tests.composed import Installation, installed
from deploy.tests.containers import Engine

pytestmark = [pytest.mark.drill, pytest.mark.long]

HEALS_WITHIN = 180.0  # seconds, on a busy machine
OURS = ("web", "worker", "urgent-worker", "beat", "webhook-sender", "signal-sender", "key-host")
CALL_OUT = ("worker", "webhook-sender", "signal-sender")
AGENT = {
    "name": "trade-bot",
    "model": "gpt-5",
    "version": "2.1.0",
    "model_hash": "sha256:9f86d081",
    "metadata": {"permitted_actions": ["read_market_data", "place_order"]},
}
EVIDENCE = {
    "live.checkpoint": "/v1/audit-log/checkpoint",
    "test.checkpoint": "/v1/audit-log/test/checkpoint",
    "live.crl": "/v1/crl",
    "test.crl": "/v1/crl?environment=test",
}
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)"


@pytest.fixture(scope="module")
def installation(engine: Engine) -> Iterator[Installation]:
    with installed(engine) as running:
        assert eventually(lambda: is_healthy(running, "web"), seconds=HEALS_WITHIN)
        yield running


def is_healthy(installation: Installation, part: str) -> bool:
    name = installation.container(part)
    return installation.engine.attempt("healthcheck", "run", name).returncode == 0


def data_of(answer: requests.Response) -> dict[str, Any]:
    assert answer.status_code in {200, 201}, answer.text
    found: dict[str, Any] = answer.json()["data"]
    return found


def certify(installation: Installation) -> dict[str, Any]:
    """Register an agent and issue its certificate: the databases and the HSM."""
    agent = data_of(installation.ask("POST", "/v1/agents", json=AGENT))
    return data_of(installation.ask("POST", f"/v1/agents/{agent['id']}/certify"))


def heals(installation: Installation) -> bool:
    """Return whether agents can be registered and certified, at once or before long."""

    def works() -> bool:
        try:
            certify(installation)
        except (AssertionError, requests.ConnectionError, requests.Timeout):
            return False
        return True

    return eventually(works, seconds=HEALS_WITHIN)


def test_first_request_works_through_nginx(installation: Installation) -> None:
    certificate = certify(installation)
    event = {
        "agent_id": certificate["agent_id"],
        "action_type": "data_access",
        "occurred_at": datetime.now(UTC).isoformat(),
    }
    ingested = data_of(installation.ask("POST", "/v1/events", json=event))
    verified = data_of(installation.ask("GET", f"/v1/verify/{certificate['serial_number']}"))
    revoked = installation.ask("GET", "/v1/crl", scheme="http")
    probed = installation.ask("GET", "/health/ready")
    redirected = installation.ask("GET", "/v1/agents", scheme="http", allow_redirects=False)

    assert (ingested["agent_id"], ingested["risk_band"]) == (certificate["agent_id"], "low")
    assert (verified["status"], verified["agent_status"]) == ("active", "active")
    crl = x509.load_der_x509_crl(revoked.content)
    assert crl.get_revoked_certificate_by_serial_number(int(certificate["serial_number"], 16)) is None
    assert probed.status_code == 404
    assert redirected.headers["Location"] == "https://agents.example.org/v1/agents"


def test_doctor_finds_nothing_once_the_worker_has_filled_the_pools_of_keys(
    installation: Installation,
) -> None:
    found = [""]

    def is_well() -> bool:
        looked = installation.in_container("web", "python", "manage.py", "doctor")
        found.append(looked.stdout + looked.stderr)
        return looked.returncode == 0

    assert eventually(is_well, seconds=HEALS_WITHIN), found[-1]


@pytest.mark.parametrize("part", ["postgres", "valkey", "web"])
def test_part_is_healthy(installation: Installation, part: str) -> None:
    assert eventually(lambda: is_healthy(installation, part), seconds=HEALS_WITHIN)

    state = installation.engine.attempt("inspect", installation.container(part)).stdout
    assert json.loads(state)[0]["State"]["Health"]["Status"] == "healthy"


@pytest.mark.parametrize("part", [*OURS, "valkey"])
def test_part_is_confined(installation: Installation, part: str) -> None:
    status = installation.in_container(part, "cat", "/proc/1/status").stdout
    refused = installation.in_container(part, "touch", "/etc/new").stderr

    user = 999 if part == "valkey" else 10001
    assert re.search(rf"^Uid:\s+{user}\s+{user}\s", status, re.MULTILINE)
    assert re.search(r"^CapEff:\s+0+$", status, re.MULTILINE)
    assert re.search(r"^CapBnd:\s+0+$", status, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\s+1$", status, re.MULTILINE)
    assert "Read-only file system" in refused


def test_secrets_are_in_files_alone(installation: Installation) -> None:
    names = [installation.container(part) for part in (*OURS, "postgres", "valkey", "nginx")]

    shown = installation.engine("inspect", *names)

    assert "/run/secrets/database-url" in shown
    for secret in (installation.folder / "secrets").iterdir():
        assert secret.read_text().strip() not in shown, secret.name


def test_parts_that_call_tenants_alone_reach_the_outside(installation: Installation) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError as error:
            pytest.skip(f"this machine has no way to the outside: {error}")
        address = probe.getsockname()[0]
    with socket.create_server((address, 0)) as outside:
        port = str(outside.getsockname()[1])

        tried = {
            part: installation.in_container(part, "python", "-c", CONNECT, address, port) for part in OURS
        }

    assert {part for part, done in tried.items() if done.returncode == 0} == set(CALL_OUT)
    for part in set(OURS) - set(CALL_OUT):
        assert "Network is unreachable" in tried[part].stderr


@pytest.mark.parametrize("part", ["web", "key-host", "postgres", "valkey"])
def test_service_works_again_after_a_restart(installation: Installation, part: str) -> None:
    before = installation.process(part)

    told = installation.compose("restart", part)

    assert eventually(lambda: installation.process(part) not in {0, before}, seconds=HEALS_WITHIN), told
    assert heals(installation)


def test_killed_key_host_is_started_again(installation: Installation) -> None:
    assert eventually(lambda: installation.process("key-host") > 0, seconds=HEALS_WITHIN)
    killed = installation.process("key-host")
    assert killed > 0

    os.kill(killed, signal.SIGKILL)

    assert eventually(lambda: installation.process("key-host") not in {0, killed}, seconds=HEALS_WITHIN)
    assert heals(installation)


def keep_evidence(installation: Installation) -> None:
    folder = installation.folder / "evidence"
    folder.mkdir(mode=0o755)
    for name, path in EVIDENCE.items():
        answer = installation.ask("GET", path)
        assert answer.status_code == 200
        (folder / name).write_bytes(answer.content)


def test_log_is_verified_where_doctor_looks(installation: Installation) -> None:
    verified = installation.in_container("worker", "python", "manage.py", "audit_verify")

    assert verified.returncode == 0, verified.stdout + verified.stderr
    kept = installation.in_container("web", "cat", "/var/lib/service/verified/verified.json")
    assert set(json.loads(kept.stdout)) == {"live", "test"}


def test_installation_is_restored_from_its_backups_onto_empty_volumes(installation: Installation) -> None:
    before = certify(installation)
    keep_evidence(installation)
    for _ in range(2):
        installation.back_up()
    after = certify(installation)

    told = installation.restore()

    made = [path.name.partition("-")[0] for path in sorted(installation.backups.iterdir())]
    assert set(made) == {"archive", "base", "tokens"}
    assert "log verifies" in told
    assert eventually(lambda: is_healthy(installation, "web"), seconds=HEALS_WITHIN)
    assert heals(installation)
    verified = data_of(installation.ask("GET", f"/v1/verify/{before['serial_number']}"))
    assert verified["status"] == "active"
    assert installation.ask("GET", f"/v1/verify/{after['serial_number']}").status_code == 404


def test_metrics_are_published_inside_as_documented(installation: Installation) -> None:
    installation.publish_metrics()

    assert eventually(lambda: is_healthy(installation, "web"), seconds=HEALS_WITHIN)
    assert "# HELP compliance_" in installation.metrics()
    for part in ("worker", "urgent-worker", "beat", "webhook-sender", "signal-sender", "key-host"):
        asked = installation.in_container("web", "python", "-c", CONNECT, part, "9100")
        assert asked.returncode == 0, asked.stderr


def test_upgrade_makes_parts_anew_and_keeps_what_there_is(installation: Installation) -> None:
    before = certify(installation)
    web, stores = installation.process("web"), [installation.process(part) for part in ("postgres", "valkey")]

    installation.upgrade()

    assert installation.process("web") != web
    assert [installation.process(part) for part in ("postgres", "valkey")] == stores
    assert heals(installation)
    verified = data_of(installation.ask("GET", f"/v1/verify/{before['serial_number']}"))
    assert verified["status"] == "active"
