"""The client's operations are those of the service's OpenAPI description."""

import inspect
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

import pytest

from agentid import AsyncClient, Client
from agentid.client.operation import Group, Listing, Operation
from agentid.client.request import Request
from compliance.tests.description import description

LEFT_OUT = {
    "authorizeRequest": "gateways ask it about others' requests; agentid.middleware does",
}
"""Operations that the client lacks, and why."""
LEFT_OUT_FIELDS = {"client_id", "client_secret"}
"""The client authenticates with its API key in a header."""

Described = Operation[Any, Any] | Listing[Any, Any]


@cache
def service_operations() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Method, path and description of each operation."""
    schema = description()
    return {
        described["operationId"]: (method.upper(), path, resolved(described, schema))
        for path, methods in schema["paths"].items()
        for method, described in methods.items()
    }


def resolved(node: Any, schema: Any, depth: int = 0) -> Any:
    """The node with what it refers to in place, as deep as bodies need."""
    if isinstance(node, dict):
        if "$ref" in node and depth < 12:
            return resolved(schema["components"]["schemas"][node["$ref"].split("/")[-1]], schema, depth + 1)
        return {name: resolved(each, schema, depth + 1) for name, each in node.items()}
    return [resolved(each, schema, depth + 1) for each in node] if isinstance(node, list) else node


def client_operations() -> Iterator[Described]:
    with Client("https://service.example") as client:
        for group in vars(client).values():
            if isinstance(group, Group):
                yield from (
                    each for each in vars(type(group)).values() if isinstance(each, Operation | Listing)
                )


def by_id() -> dict[str, Described]:
    return {each.operation_id: each for each in client_operations()}


def example(described: Described) -> Request[Any]:
    """The request with a text for each argument."""
    parameters = list(inspect.signature(described.describe).parameters.values())[1:]
    positional = [f"~{each.name}" for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    named = {each.name: f"~{each.name}" for each in parameters if each.kind is each.KEYWORD_ONLY}
    request: Request[Any] = described.describe(None, *positional, **named)
    return request


def test_every_operation_of_the_service_is_in_the_client_or_left_out_for_a_reason() -> None:
    assert by_id().keys() | LEFT_OUT.keys() == service_operations().keys()
    assert not by_id().keys() & LEFT_OUT.keys()
    assert len(list(client_operations())) == len(by_id())


@pytest.mark.parametrize("operation_id", sorted(by_id()))
def test_operation_sends_what_the_service_describes(operation_id: str) -> None:
    method, path, described = service_operations()[operation_id]
    parameters = [each for each in described.get("parameters", []) if "name" in each]

    request = example(by_id()[operation_id])

    assert request.method == method
    assert re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), request.path)
    assert set(request.query) == {each["name"] for each in parameters if each["in"] == "query"}
    assert (request.key is not None) == any(each["name"] == "Idempotency-Key" for each in parameters)
    assert ("DPoP" in request.headers) == any(each["name"] == "DPoP" for each in parameters)
    assert sent_fields(request) == described_fields(described)


def sent_fields(request: Request[Any]) -> set[str]:
    """Those in lower case: other spellings are a standard's, or second names."""
    kind = request.headers.get("Content-Type")
    if kind == "application/json":
        assert request.content is not None
        return {name for name in json.loads(request.content) if name.islower()}
    if kind == "application/x-www-form-urlencoded":
        assert request.content is not None
        return {name for name, _ in parse_qsl(request.content.decode())}
    return set()


def described_fields(described: dict[str, Any]) -> set[str]:
    """The fields of the body, each by its name in lower case with underscores."""
    content = described.get("requestBody", {}).get("content", {})
    bodies = [
        content[kind]["schema"]
        for kind in ("application/json", "application/x-www-form-urlencoded")
        if kind in content
    ]
    return {
        name for body in bodies[:1] for name in body.get("properties", {}) if name.islower()
    } - LEFT_OUT_FIELDS


def test_required_fields_are_required_arguments() -> None:
    for operation_id, described in by_id().items():
        content = service_operations()[operation_id][2].get("requestBody", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema", {})
        parameters = inspect.signature(described.describe).parameters
        required = {name.rstrip("_") for name, each in parameters.items() if each.default is each.empty}
        assert set(schema.get("required", ())) <= required, operation_id


def test_both_clients_have_the_same_operations() -> None:
    with Client("https://service.example") as client:
        groups = {name: type(group) for name, group in vars(client).items() if isinstance(group, Group)}

    other = AsyncClient("https://service.example")

    assert groups == {name: type(group) for name, group in vars(other).items() if isinstance(group, Group)}
