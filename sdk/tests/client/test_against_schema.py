"""The client's operations are those of the service's OpenAPI description."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.conf import settings

from agentid import Client
from agentid.client.operation import FORM, JSON, Group, Operation
from agentid.client.transport import Request
from compliance.tests.description import description
from deploy.release import typescript_package
from deploy.release.client_package import CREDENTIALS, FOLDER, LEFT_OUT, Generator


def test_generated_files_are_what_the_description_yields() -> None:
    folder = Path(settings.BASE_DIR) / FOLDER

    # If they differ: ./run exec python -m deploy.release.client_package
    assert {each.name: each.read_text() for each in folder.glob("*.py")} == Generator(description()).files()


def test_generated_types_of_typescript_are_of_this_description() -> None:
    folder = Path(settings.BASE_DIR) / typescript_package.FOLDER

    # If they differ: (cd sdk-typescript && npm ci) and ./run exec python -m deploy.release.typescript_package
    assert (folder / typescript_package.TABLE).read_text() == typescript_package.table(description())
    first_line = typescript_package.header("The types", description())
    assert (folder / typescript_package.TYPES).read_text().startswith(first_line)


def test_operation_without_a_name_is_refused() -> None:
    schema = description()
    schema["paths"]["/v1/new"] = {"get": {"operationId": "getNew"}}

    with pytest.raises(ValueError, match="getNew"):
        Generator(schema).files()


def resolved(node: Any, schema: Any, depth: int = 0) -> Any:
    """The node with what it refers to in place, as deep as bodies need."""
    if isinstance(node, dict):
        if "$ref" in node and depth < 12:
            return resolved(schema["components"]["schemas"][node["$ref"].split("/")[-1]], schema, depth + 1)
        return {name: resolved(each, schema, depth + 1) for name, each in node.items()}
    return [resolved(each, schema, depth + 1) for each in node] if isinstance(node, list) else node


def client_operations() -> dict[tuple[str, str], Operation[Any, Any]]:
    """The client's operations by method and path."""
    with Client("https://service.example") as client:
        groups = [type(each) for each in vars(client).values() if isinstance(each, Group)]
    found = [each for group in groups for each in vars(group).values() if isinstance(each, Operation)]
    by_path: dict[tuple[str, str], Operation[Any, Any]] = {(each.method, each.path): each for each in found}
    assert len(by_path) == len(found)
    return by_path


def example(operation: Operation[Any, Any]) -> Request:
    """The request with a text for each argument."""
    parameters = list(operation.signature.parameters.values())[1:]
    named = {each.name: b"~" if each.annotation == "bytes" else f"~{each.name}" for each in parameters}
    return operation.request(**named)


def test_operations_send_what_the_service_describes() -> None:
    schema, ours = description(), client_operations()
    for path, methods in schema["paths"].items():
        for method, described in methods.items():
            if described["operationId"] not in LEFT_OUT:
                found = ours.pop((method.upper(), path))
                check(example(found), path, resolved(described, schema))
                check_required(found, resolved(described, schema))

    assert ours == {}


def check(request: Request, path: str, described: dict[str, Any]) -> None:
    parameters = described.get("parameters", [])

    assert re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), request.path)
    assert set(request.query) == {each["name"] for each in parameters if each["in"] == "query"}
    assert (request.key is not None) == any(each["name"] == "Idempotency-Key" for each in parameters)
    assert ("DPoP" in request.headers) == any(each["name"] == "DPoP" for each in parameters)
    assert sent_fields(request) == body_of(described).get("properties", {}).keys() - CREDENTIALS, path


def sent_fields(request: Request) -> set[str]:
    kind, content = request.headers.get("Content-Type"), request.content or b""
    if kind == FORM:
        return {name for name, _ in parse_qsl(content.decode())}
    return set(json.loads(content)) if kind == JSON else set()


def body_of(described: dict[str, Any]) -> dict[str, Any]:
    content = described.get("requestBody", {}).get("content", {})
    found: dict[str, Any] = next((content[kind]["schema"] for kind in (JSON, FORM) if kind in content), {})
    return found


def check_required(operation: Operation[Any, Any], described: dict[str, Any]) -> None:
    parameters = operation.signature.parameters
    required = {name.rstrip("_") for name, each in parameters.items() if each.default is each.empty}
    needed = {re.sub("([A-Z])", r"_\1", name).lower() for name in body_of(described).get("required", ())}

    assert needed - {"grant_type"} <= required
