"""What the service signs, verified by others: the SDK, joserfc, and openssl by the commands of the guides."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from agentid.errors import NotValid, Reason
from agentid.verify import RecordKind, verify_record
from agentid.verify.key_sets import read_keys
from certificates.tests.factories import make_certified_agent
from compliance.tests.client import ApiClient
from delegation.reviews.tests.factories import decide, make_scoped_agent, open_review
from delegation.stops.tests.factories import make_crowd, make_stop
from delegation.tests.conftest import empty_rings, tenant
from events.tests.factories import make_high_event
from reports.bundles.archive import unpack
from tenancy.models import Tenant

__all__ = ["empty_rings", "tenant"]

DOCS = Path(settings.BASE_DIR) / "docs"


def receipt_path(tenant: Tenant) -> str:
    make_crowd(tenant, 3)
    return f"/v1/stops/{make_stop(tenant).id}/receipt"


def record_path(tenant: Tenant) -> str:
    permitted = {"permitted_actions": ["größe.ändern", "read"]}
    changed = make_certified_agent(tenant, metadata=permitted)
    kept = [make_scoped_agent(tenant) for _ in range(2)]
    review = open_review(tenant)
    decide(review, "reduce", changed, actions=["größe.ändern"])
    decide(review, "keep", *kept)
    return f"/v1/access-reviews/{review.id}/record"


def credential_path(tenant: Tenant) -> str:
    return f"/v1/agents/{make_certified_agent(tenant).id}/credential"


PATHS = {"receipt": receipt_path, "record": record_path, "credential": credential_path}
RECORDS = {"receipt": RecordKind.HALT, "record": RecordKind.ACCESS_REVIEW}


def answered(client: ApiClient, path: str) -> dict[str, Any]:
    answer = client.get(path)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()["data"]
    return found


def code_of(guide: str, heading: str, language: str) -> list[str]:
    """The code in this language below a heading of a guide."""
    section = (DOCS / guide).read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def forged(text: str) -> str:
    """The token with other claims under the same signature."""
    header, payload, signature = text.split(".")
    other = "A" if payload[-9] != "A" else "B"
    return f"{header}.{payload[:-9]}{other}{payload[-8:]}.{signature}"


@pytest.mark.parametrize("kind", PATHS)
def test_the_guides_recipe_verifies(client: ApiClient, tenant: Tenant, tmp_path: Path, kind: str) -> None:
    (code,) = code_of("stops.md", "Verify what is signed", "python")
    data = answered(client, PATHS[kind](tenant))
    (tmp_path / "jwks.json").write_bytes(client.get("/.well-known/jwks.json").content)

    def is_verified(**changed: Any) -> bool:
        (tmp_path / "answer.json").write_text(json.dumps({"data": {**data, **changed}}))
        command = [sys.executable, "-W", "ignore", "-c", code]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0

    assert is_verified()
    assert not is_verified(**{kind: forged(data[kind])})
    if "lines" in data:
        assert not is_verified(lines=data["lines"][::-1])
        assert not is_verified(lines=[])


def test_openssl_alone_verifies_an_attestation(client: ApiClient, tenant: Tenant, tmp_path: Path) -> None:
    commands = "".join(code_of("reports.md", "Check a report", "bash")[1:])
    agent = make_certified_agent(tenant)
    make_high_event(agent)
    files = unpack(client.get(f"/v1/agents/{agent.id}/attestation/bundle").content)
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)

    def run() -> subprocess.CompletedProcess[str]:
        command = ["/bin/sh", "-e", "-c", commands]
        return subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)

    manifest = json.loads(files["manifest.json"])
    said, *digests = run().stdout.splitlines()
    assert said == "Signature Verified Successfully"
    stated = [f"{each['sha256']} *{each['name']}" for each in manifest["files"]]
    assert digests == [*stated, f"{manifest['key']['sha256']} *stdin"]
    (tmp_path / "manifest.json").write_bytes(files["manifest.json"].replace(b"live", b"test"))
    assert run().returncode != 0


@pytest.mark.parametrize("name", RECORDS)
def test_the_sdk_verifies_records_of_either_kind(client: ApiClient, tenant: Tenant, name: str) -> None:
    data = answered(client, PATHS[name](tenant))
    given: dict[str, Any] = {
        "keys": read_keys(client.get("/.well-known/jwks.json").json()),
        "issuer": settings.TOKEN_ISSUER,
    }
    (other,) = set(RecordKind) - {RECORDS[name]}

    claims = verify_record(data[name], data["lines"], kind=RECORDS[name], **given)

    assert (claims["count"], claims["env"]) == (3, "live")
    refused: list[tuple[Reason, RecordKind, Any, dict[str, Any]]] = [
        (Reason.MALFORMED, other, data["lines"], {}),
        (Reason.NOT_AS_SEALED, RECORDS[name], data["lines"][1:], {}),
        (Reason.INVALID_ISSUER, RECORDS[name], data["lines"], {"issuer": "https://other.example"}),
        (Reason.WRONG_ENVIRONMENT, RECORDS[name], data["lines"], {"environment": "test"}),
    ]
    for reason, kind, lines, more in refused:
        with pytest.raises(NotValid) as error:
            verify_record(data[name], lines, kind=kind, **given | more)
        assert error.value.reason is reason


def test_a_long_record_is_signed_once_too(client: ApiClient, tenant: Tenant) -> None:
    agents = make_crowd(tenant, 600)
    review = open_review(tenant, match={"agent_ids": [str(agent.id) for agent in agents]})
    decide(review, "keep", *agents[1:])
    decide(review, "keep", agents[0])

    first, second = (answered(client, f"/v1/access-reviews/{review.id}/record") for _ in range(2))

    assert first == second
