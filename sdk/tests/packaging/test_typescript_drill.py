"""The TypeScript package's own tests, and its quick start, against the running service."""

import json
import os
import re
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Final

import pytest
from django.conf import settings
from django.db import connections

from certificates.tests.factories import make_authorities
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from deploy.release.typescript_package import FOLDER
from gateway.approvals.models import Approval
from gateway.approvals.tests.factories import decide
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant
from tests.packaging.test_wheel_drill import run
from tests.served import Service
from tests.verify.test_messages import delivery
from webhooks.sending.signature import new_secret

PACKAGE: Final = Path(settings.BASE_DIR) / FOLDER
NODE: Final = shutil.which("node")
OLDEST: Final = (20, 3)

pytestmark = pytest.mark.drill


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with its dependencies."""
    version = run(NODE, "--version") if NODE else "v0"
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST:
        pytest.skip("no Node 20.3")
    folder = tmp_path_factory.mktemp("typescript") / "package"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "build"))
    run("npm", "ci", "--no-audit", "--no-fund", cwd=folder)
    return folder


def signed_delivery() -> str:
    """A webhook's delivery as the service signs it, with the secret."""
    secret = new_secret()
    body, headers = delivery(secret, at=now(), event="webhook.test")
    return json.dumps({"secret": secret, "headers": headers, "body": body.decode()})


@contextmanager
def attended(tenant: Tenant) -> Iterator[None]:
    """Someone who meanwhile decides on the approvals of a tenant, as their details say."""
    ended = Event()

    def attend() -> None:
        with environments.use(Environment.LIVE):
            while not ended.wait(0.2):
                found = list(Approval.objects.for_tenant(tenant.id).filter(status="pending"))
                released = {each.agent_id for each in found if each.details.get("payee") == "go on"}
                for each in found:
                    is_held = each.details.get("held") and each.agent_id not in released
                    if each.details.get("payee") not in ("nobody decides", "go on") and not is_held:
                        is_good = each.details.get("payee") != "stranger"
                        decide(each, approved=is_good, note="" if is_good else "not this payee")
        connections.close_all()

    thread = Thread(target=attend)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_own_tests_pass(package: Path, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    # Receipts are signed in this process.
    monkeypatch.setattr(settings, "TOKEN_ISSUER", service.address)
    with environments.use(Environment.LIVE):
        make_authorities()
        tenant = make_tenant()
        key, gateway_key = make_key(tenant), make_key(tenant, ["gateway:authorize"])
    variables = {
        "AGENTID_BASE_URL": service.address,
        "AGENTID_API_KEY": key,
        "AGENTID_GATEWAY_KEY": gateway_key,
        "AGENTID_DELIVERY": signed_delivery(),
        "AGENTID_ATTENDED": "1",
    }

    with attended(tenant):
        said = run("npm", "test", cwd=package, env=os.environ | variables)

    assert re.search(r"^# skipped 0$|^\N{INFORMATION SOURCE} skipped 0$", said, re.MULTILINE), said


def test_quick_start_runs_with_the_packed_package(
    package: Path, service: Service, sandbox_key: str, tmp_path: Path
) -> None:
    packed = package / run("npm", "pack", cwd=package).split()[-1]
    clean = tmp_path / "clean"
    clean.mkdir()
    run("npm", "install", "--no-audit", "--no-fund", packed, cwd=clean)
    blocks = re.findall(r"```js\n(.*?)```", (PACKAGE / "README.md").read_text(), re.DOTALL)
    (clean / "start.mjs").write_text("\n".join(blocks))

    said = run(
        *("node", "start.mjs"),
        cwd=clean,
        env=os.environ | {"AGENTID_BASE_URL": service.address, "AGENTID_API_KEY": sandbox_key},
    )

    assert said.endswith("verified\n")
    with tarfile.open(packed) as archive:
        names = {name.removeprefix("package/") for name in archive.getnames()}
    assert {name for name in names if not name.startswith("dist/")} == {"README.md", "package.json"}
