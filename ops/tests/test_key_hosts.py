"""The service with its keys behind a key host: over HTTP, by its commands, and while the host is away."""

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from pytest_django.fixtures import Settings

from certificates.models import PooledKey
from certificates.tests.factories import make_authorities
from compliance.core.environments import Environment
from compliance.keys.hosts.backend import KeyHostBackend
from compliance.keys.registry import backend_for, reset
from compliance.keys.tests.hosted import RunningHosts, running_hosts
from compliance.tests.client import ApiClient
from tenancy.tests.factories import make_key, make_tenant


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHosts]:
    with running_hosts(tmp_path_factory.mktemp("keys") / "hosts") as hosts:
        yield hosts


@pytest.fixture(autouse=True)
def hosted(hosts: RunningHosts, settings: Settings) -> Iterator[Settings]:
    """This process opens no module and knows no PIN."""
    settings.PKCS11_MODULE, settings.PKCS11_HOSTS = "", 1
    settings.PKCS11_HOST_FOLDER = str(hosts.folder)
    settings.PKCS11_TOKENS = {name: {**entry, "pin": ""} for name, entry in settings.PKCS11_TOKENS.items()}
    reset()
    yield settings
    reset()


@pytest.fixture
def client(api: ApiClient) -> ApiClient:
    make_authorities()
    return api.as_key(make_key(make_tenant("Hosted")))


def register(client: ApiClient) -> str:
    answer = client.post("/v1/agents", {"name": "hosted", "model_hash": "h"})
    return str(answer.json()["data"]["id"])


def findings() -> tuple[dict[str, Any], int]:
    out, code = io.StringIO(), 0
    try:
        call_command("doctor", "--json", "--environment", "live", stdout=out, stderr=io.StringIO())
    except SystemExit as ended:
        code = int(ended.code or 0)
    return {finding["check"]: finding for finding in json.loads(out.getvalue())}, code


def test_agent_is_certified_signs_and_is_verified(client: ApiClient, api: ApiClient) -> None:
    agent = register(client)

    certified = client.post(f"/v1/agents/{agent}/certify")
    signed = client.post(f"/v1/agents/{agent}/sign", {"payload": {"order": 1}})
    serial = certified.json()["data"]["serial_number"]

    assert (certified.status_code, signed.status_code) == (201, 200)
    assert api.get(f"/v1/verify/{serial}").json()["data"]["status"] == "active"
    message = {**signed.json()["data"], "payload": {"order": 1}}
    body = {name: message[name] for name in ("payload", "signature", "certificate_serial")}
    assert api.post("/v1/verify/message", body).json()["data"]["valid"] is True


def test_without_its_host_the_service_answers_503(client: ApiClient, hosted: Settings) -> None:
    agent = register(client)
    hosted.PKCS11_HOST_FOLDER += "-away"
    reset()

    answer = client.post(f"/v1/agents/{agent}/certify")

    assert answer.status_code == 503
    assert list(answer.json()) == ["error"]
    assert int(answer.headers["Retry-After"]) >= 1


def test_commands_work_through_the_host(client: ApiClient) -> None:
    assert isinstance(backend_for(Environment.LIVE), KeyHostBackend)
    call_command("ca_init", "--environment", "live", stdout=io.StringIO())
    call_command("key_pool_fill", "--environment", "live", "--size", "1", stdout=io.StringIO())
    out = io.StringIO()

    with pytest.raises(SystemExit):
        call_command("key_reconcile", "--json", "--grace-minutes", "0", stdout=out, stderr=io.StringIO())

    assert PooledKey.objects.count() == 1
    assert PooledKey.objects.get().key_uri not in out.getvalue()


def test_doctor_says_which_host_is_down(client: ApiClient, hosted: Settings) -> None:
    before, _ = findings()
    hosted.PKCS11_HOSTS = 2
    reset()

    after, code = findings()

    assert (before["hsm"]["ok"], before["hsm parts"]["ok"]) == (True, True)
    assert after["hsm parts"]["detail"] == "key host 1 does not respond"
    assert after["hsm"]["is_down"]
    assert code == 5
