"""Clients that two generators make of the description can be imported and used."""

import importlib
import inspect
import json
import pkgutil
import re
import shutil
import subprocess
import sys
import typing
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from compliance.tests.description import description
from tests.conftest import Reported
from tests.served import Service


class JavaMade:
    """What openapi-generator makes: a class for each tag, a method for each operation."""

    def __init__(self, package: ModuleType, address: str, key: str) -> None:
        client = package.ApiClient(package.Configuration(host=address, access_token=key))
        self.close = client.rest_client.pool_manager.clear
        apis = [made for name, made in vars(package).items() if name.endswith("Api")]
        self.operations = {name: each for api in apis for name, each in inspect.getmembers(api(client))}

    @staticmethod
    def generate(text: Path, into: Path) -> None:
        if shutil.which("java") is None:
            pytest.skip("Java is not installed")
        folders = find_spec("openapi_generator_cli")
        assert folders is not None
        assert folders.submodule_search_locations is not None
        jar = Path(folders.submodule_search_locations[0]) / "openapi-generator.jar"
        run("java", "-Xmx512m", "-jar", jar, "generate", "-g", "python", "-i", text, "-o", into,
            "--additional-properties", "packageName=java_made")  # fmt: skip

    def call(self, operation: str, body: Any, parameters: dict[str, Any]) -> Any:
        work = self.operations[operation]
        if body is not None:
            name = next(name for name in inspect.signature(work).parameters if name.endswith("_request"))
            parameters = {**parameters, name: body}
        found = work(**parameters).data
        found = getattr(found, "actual_instance", found)  # of a union
        many = found if isinstance(found, list) else [found]
        shown = [each.model_dump(mode="json", by_alias=True) for each in many]
        return {"data": shown if isinstance(found, list) else shown[0]}


class PythonMade:
    """What openapi-python-client makes: a module for each operation."""

    def __init__(self, package: ModuleType, address: str, key: str) -> None:
        self.client = package.AuthenticatedClient(base_url=address, token=key)
        self.close = self.client.get_httpx_client().close
        self.modules = {
            found.name.rpartition(".")[2]: importlib.import_module(found.name)
            for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        }

    @staticmethod
    def generate(text: Path, into: Path) -> None:
        settings = into.with_suffix(".yml")
        settings.write_text(
            "project_name_override: made\npackage_name_override: python_made\npost_hooks: []\n"
        )
        run(sys.executable, "-m", "openapi_python_client", "generate", "--path", text, "--output-path", into,
            "--config", settings)  # fmt: skip

    def call(self, operation: str, body: Any, parameters: dict[str, Any]) -> Any:
        work = self.modules[operation].sync_detailed
        if body is not None:
            kind = typing.get_type_hints(work)["body"]
            kinds = [each for each in typing.get_args(kind) if hasattr(each, "from_dict")] or [kind]
            parameters = {**parameters, "body": kinds[0].from_dict(body)}
        found = work(client=self.client, **parameters)
        assert found.parsed is not None, found
        return found.parsed.to_dict()


def run(*command: Any) -> None:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.matrix
@pytest.mark.filterwarnings("default")  # what generators write is not ours to mend
@pytest.mark.parametrize("made", [JavaMade, PythonMade])
def test_generated_client_calls_the_service(
    service: Service,
    reported: Reported,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    made: Any,
) -> None:
    (text := tmp_path / "description.json").write_text(json.dumps(description()))
    made.generate(text, tmp_path / "made")
    monkeypatch.syspath_prepend(str(tmp_path / "made"))
    package = importlib.import_module(re.sub(r"(?<!^)M", "_m", made.__name__).lower())
    client = made(package, service.address, reported.api_key)
    request.addfinalizer(client.close)  # else a later test would find its connection open
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)

    def call(operation: str, body: Any = None, **parameters: Any) -> Any:
        found = client.call(operation, body, parameters)
        assert "data" in found, found
        return found["data"]

    agent = call("register_agent", {"name": "Made", "model_hash": "sha256:00"})
    its = {"agent_id": agent["id"]}
    certificate = call("certify_agent", **its)
    serial = {"serial": certificate["serial_number"]}
    event = {"agentId": agent["id"], "actionType": "api_call", "details": {"tool": "read"}}
    recorded = call("record_event", event)
    batch = call("record_events", {"events": [event, {**event, "actionType": "data_access"}]})
    signed = call("sign_message", {"payload": {"to": "you"}}, **its)
    token = call("issue_delegation", {"chain": [{"sub": "user:1", "type": "human"}]}, **its)["token"]
    webhook = call("create_webhook", {"url": "https://example.com/hook", "events": ["risk.alert"]})

    assert call("get_agent", **its)["status"] == "active"
    assert call("update_agent", {"enforcement": None}, **its)["enforcement"] is None
    assert call("verify_certificate", **serial)["status"] == "active"
    assert [result["status"] for result in batch] == [201, 201]
    assert {each["id"] for each in call("list_events", **its)} > {recorded["id"]}
    assert call("verify_message", {"payload": {"to": "you"}, "signature": signed["signature"],
                                   "certificate_serial": signed["certificate_serial"]})["valid"]  # fmt: skip
    assert call("verify_delegation", {"token": token})["valid"]
    assert call("get_webhook", webhook_id=webhook["id"])["events"] == ["risk.alert"]
    assert call("list_audit_log", limit=5)


def schemas(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from schemas(each)


def test_nothing_is_described_that_generators_cannot_write() -> None:
    found = description()
    operations = [(name, each) for path in found["paths"].values() for name, each in path.items()]
    empty = [name for name, each in found["components"]["schemas"].items() if each.get("enum") == [None]]
    twice = {
        name
        for each in schemas(found)
        if isinstance(each.get("properties"), dict)
        for name, times in Counter(
            re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower() for name in each["properties"]
        ).items()
        if times > 1
    }
    optional = {each["operationId"] for name, each in operations
                if "requestBody" in each and not each["requestBody"].get("required")}  # fmt: skip

    assert empty == []
    assert twice == set()
    renewals = {"renewAgentCertificate", "renewCertificate"}
    assert optional == {"createSignalStream", "pollSignals", "rotateWebhookSecret", *renewals}, (
        "whose fields all are optional"
    )
