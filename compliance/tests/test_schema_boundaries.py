"""The server takes what the description calls valid and refuses what it does not, one field at a time."""

import copy
import datetime as dt
import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import UUID

import jsonschema_rs
import pytest
from django.db import transaction
from pytest_django.fixtures import Settings

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tests import sound_requests
from compliance.tests.client import ApiClient
from compliance.tests.description import description
from compliance.tests.sound_requests import bodies
from incidents.duties.statements import MOMENTS

# Every field of every endpoint, at and beyond its bounds: `-m matrix` runs them, and CI does.
pytestmark = pytest.mark.matrix

known = sound_requests.known
DESCRIPTION = description()
OPERATIONS = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in DESCRIPTION["paths"].items() for method, operation in methods.items()
}  # fmt: skip
JSON = "application/json"

ISSUER_FIELDS = ("issuer", "jwks_uri", "jwks")
# Where a URL leads; what keys a set holds; a payload that is null; another token; the order of two moments;
# the decision that names actions.
MEANING = {
    ("createWebhook", "url"),
    ("updateWebhook", "url"),
    *((name, field) for name in ("createTrustedIssuer", "updateTrustedIssuer") for field in ISSUER_FIELDS),
    ("signMessage", "payload"),
    ("issueDelegation", "parent_token"),
    ("createGatewayRoute", "credentials"),
    ("createGatewayRoute", "root"),
    ("createGatewayRoute", "nonce_required"),
    ("updateGatewayRoute", "credentials"),
    ("updateGatewayRoute", "root"),
    ("updateGatewayRoute", "nonce_required"),
    ("decideAccessReviewItem", "decision"),
    ("requestReport", "period_start"),
    ("requestReport", "period_end"),
    ("createSignalStream", "delivery"),
    ("updateSignalStream", "delivery"),
    *(("updateIncident", name) for name in MOMENTS),
}
"""Fields whose value may be refused for what it means, beside their form."""
CONDITIONAL = {("registerAgent", "model_hash")}
"""Fields that are required unless something else states them."""
BESIDE = {("listEvents", "after"): "&order=asc"}
"""What a query parameter needs beside it."""


class World(NamedTuple):
    """Whom the requests are about, and a sound body for each operation that takes one."""

    client: ApiClient
    paths: dict[str, str]
    bodies: dict[str, Any]


@pytest.fixture
def world(known: tuple[ApiClient, dict[str, str]], settings: Settings) -> World:
    settings.RATE_LIMITS = dict.fromkeys(settings.RATE_LIMITS, 1_000_000)
    client, ids = known
    return World(client, ids, bodies(ids))


def resolved(schema: Any) -> Any:
    """The schema with its references put in, and OpenAPI's `nullable` said in JSON Schema."""
    if isinstance(schema, list):
        return [resolved(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return resolved(DESCRIPTION["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    found = {name: resolved(value) for name, value in schema.items() if name != "nullable"}
    if schema.get("nullable") is True:
        return {"anyOf": [found, {"type": "null"}]}
    return found


def is_date_time(text: str) -> bool:
    try:
        return bool(re.match(r"\d{4}-\d\d-\d\dT\d\d:", text)) and bool(dt.datetime.fromisoformat(text))
    except ValueError:
        return False


def is_uuid(text: str) -> bool:
    return re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text) is not None


def is_valid(schema: Any, value: Any) -> bool:
    return jsonschema_rs.Draft4Validator(
        schema, validate_formats=True, formats={"uuid": is_uuid, "date-time": is_date_time}
    ).is_valid(value)


def leaves(schema: Any) -> Iterator[Any]:
    """The alternatives of a property."""
    nested = [part for name in ("anyOf", "allOf", "oneOf") for part in schema.get(name, [])]
    yield schema
    for part in nested:
        yield from leaves(part)


def candidates(schema: Any, present: Any) -> list[Any]:
    """Values at and beyond every bound that a property's schema names, and of every other kind."""
    found: list[Any] = [None, True, 0, 1, -1, 1.5, "", "x", [], {}, [None], ["x"]]
    for one in leaves(schema):
        found += [text for value in one.get("enum", []) for text in (value, str(value).upper(), f"{value} ")]
        for name, by in (("minLength", -1), ("maxLength", 1)):
            if name in one:
                found += ["a" * one[name], "a" * max(one[name] + by, 0)]
        for name, by in (("minimum", -1), ("maximum", 1)):
            if name in one:
                found += [one[name], one[name] + by]
        item = present[0] if isinstance(present, list) and present else sample(one.get("items", {}))
        for name, by in (("minItems", -1), ("maxItems", 1)):
            if name in one:
                found += [[item] * one[name], [item] * max(one[name] + by, 0)]
    return found


def sample(items: Any) -> Any:
    return items["enum"][0] if "enum" in items else str(UUID(int=1)) if items.get("format") == "uuid" else "x"


def with_value(body: dict[str, Any], place: tuple[str, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(body)
    inner = changed
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    return changed


def fields(schema: Any, body: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Each property of an object's schema, and those of the objects in it that the sound body has."""
    for one in leaves(schema):
        for name, inner in one.get("properties", {}).items():
            present = body.get(name) if isinstance(body, dict) else None
            yield (*place, name), inner, present
            if isinstance(present, dict) or name == "metadata":
                yield from fields(inner, present or {}, (*place, name))


def request_schema(operation: dict[str, Any]) -> Any:
    schema = operation.get("requestBody", {}).get("content", {}).get(JSON, {}).get("schema")
    return resolved(schema) if schema else None


def send(world: World, operation_id: str, body: Any, query: str = "", **headers: str) -> Any:
    """The answer; what the request changed is undone."""
    method, path, _ = OPERATIONS[operation_id]
    address = path.format_map({**dict.fromkeys(re.findall(r"{(\w+)}", path), "x"), **world.paths})
    with environments.atomic():
        if body is None and request_schema(OPERATIONS[operation_id][2]):
            answer = world.client.raw(method, address + query, b"null")
        else:
            answer = world.client._send(method, address + query, body, headers)
        transaction.set_rollback(True, using=Environment.LIVE.alias)
    return answer


def is_refused(answer: Any) -> bool:
    """Whether the form of a request, or of an event in a batch, which are judged one by one, is at fault."""
    if answer.status_code == 200 and isinstance(answer.json().get("data"), list):
        return any(item.get("status") == 400 for item in answer.json()["data"])
    return bool(answer.status_code == 400)


BODIES = [name for name, (_, _, operation) in OPERATIONS.items() if request_schema(operation)]


@pytest.mark.parametrize("operation_id", BODIES)
def test_bodies_are_judged_as_described(world: World, operation_id: str) -> None:
    schema = request_schema(OPERATIONS[operation_id][2])
    sound = world.bodies[operation_id]
    assert is_valid(schema, sound)
    first = send(world, operation_id, sound)
    assert first.status_code != 400, first.content
    wrong = []

    for place, inner, present in fields(schema, sound):
        base = {**sound, "metadata": {}} if place[0] == "metadata" else sound
        for value in candidates(inner, present):
            body = with_value(base, place, value)
            answer = send(world, operation_id, body)
            valid = is_valid(schema, body)
            if is_refused(answer) is valid and not (valid and (operation_id, place[0]) in MEANING):
                wrong.append(
                    (".".join(place), str(value)[:60], valid, answer.status_code, answer.content[:120])
                )
        assert send(world, operation_id, first_without(base, place)).status_code != 500

    assert wrong == []


def first_without(body: dict[str, Any], place: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != place[0]}


@pytest.mark.parametrize("operation_id", BODIES)
def test_required_and_unknown_fields_are_judged_as_described(world: World, operation_id: str) -> None:
    schema = request_schema(OPERATIONS[operation_id][2])
    sound = world.bodies[operation_id]
    left_out = [name for name in sound if (operation_id, name) not in CONDITIONAL]
    bodies: list[Any] = [first_without(sound, (name,)) for name in left_out] + [
        {**sound, "unknown": 1},
        {},
        [],
        "x",
        None,
    ]

    for body in bodies:
        answer = send(world, operation_id, body)
        assert (answer.status_code != 400) is is_valid(schema, body), (body, answer.content)


QUERY_VALUES = [
    "", "0", "1", "-1", "+1", "1.0", "1e1", "100", "101", "999999999", "1000000000", "٣", "true", "null", "x",
    str(UUID(int=1)), str(UUID(int=1)).upper(), UUID(int=1).hex, "2026-01-01", "2026-01-01T00:00:00Z",
    "2026-01-01 00:00:00.5+01:00", "2026-13-01", "2026-01-32", "2026-01-01T25:00:00Z", "20260101", "now",
    "a" * 255, "a" * 256,
]  # fmt: skip
PARAMETERS = [
    (name, parameter["name"], parameter)
    for name, (_, _, operation) in OPERATIONS.items() for parameter in operation.get("parameters", [])
    if parameter["in"] == "query"
]  # fmt: skip


def read(schema: Any, text: str) -> Any:
    """What a client of the description makes of a text in a query."""
    if schema.get("type") == "integer" and re.fullmatch(r"-?(0|[1-9][0-9]*)", text, re.ASCII):
        return int(text)
    if schema.get("type") == "boolean":
        return {"true": True, "false": False}.get(text, text)
    return text


@pytest.mark.parametrize(("operation_id", "name", "parameter"), PARAMETERS)
def test_queries_are_judged_as_described(world: World, operation_id: str, name: str, parameter: Any) -> None:
    schema = resolved(parameter["schema"])
    own = [text for value in schema.get("enum", []) for text in (value, value.upper(), f" {value}")]

    wrong = []
    for text in [*QUERY_VALUES, *own]:
        answer = send(
            world, operation_id, None, f"?{name}={quote(text)}{BESIDE.get((operation_id, name), '')}"
        )
        assert answer.status_code in (200, 204, 400, 404, 422, 503), answer.content
        if (answer.status_code != 400) is not is_valid(schema, read(schema, text)):
            wrong.append((text[:60], answer.status_code))

    assert wrong == []


@pytest.mark.parametrize(("operation_id", "name", "parameter"), PARAMETERS)
def test_repeated_and_unknown_parameters_are_refused(
    world: World, operation_id: str, name: str, parameter: Any
) -> None:
    good = {
        "limit": "1",
        **dict.fromkeys(("agent_id", "stream_id", "blueprint_id", "differs_from"), str(UUID(int=1))),
        "before": "2026-01-01",
        **dict.fromkeys(
            ("at", "expires_after", "expires_before", "period_start", "period_end"), "2026-01-01"
        ),
    }
    good |= {"from": "0", "after": "2026-01-01", "versionTime": "2026-01-01"}
    good |= {"owner": "kim@example.com", "orphaned": "true", "dormant": "true"}
    good |= dict.fromkeys(("to", "versionId", "wait"), "1")
    value = parameter["schema"].get("enum", [good.get(name, "x")])[0]

    statuses = [
        send(world, operation_id, None, query + BESIDE.get((operation_id, name), "")).status_code
        for query in (f"?{name}={value}", f"?{name}=%00&{name}={value}", f"?{name}={value}&unknown=%00")
    ]

    assert statuses[0] != 400 == statuses[1]
    assert statuses[2] == (400 if OPERATIONS[operation_id][1].startswith("/v1/") else statuses[0])


KEYS = ["a", "!", "~", "a b", "a" * 255, "a" * 256, "", "é", "a\x7f", "a\tb", "a\x01"]
IDEMPOTENT = [
    name for name, (_, _, operation) in OPERATIONS.items()
    if any(one["name"] == "Idempotency-Key" for one in operation.get("parameters", []))
]  # fmt: skip


@pytest.mark.parametrize("operation_id", IDEMPOTENT)
def test_idempotency_keys_are_judged_as_described(world: World, operation_id: str) -> None:
    (schema,) = [
        one["schema"] for one in OPERATIONS[operation_id][2]["parameters"] if one["name"] == "Idempotency-Key"
    ]

    for key in KEYS:
        answer = send(world, operation_id, world.bodies.get(operation_id), Idempotency_Key=key)
        refused = answer.status_code == 400 and "Idempotency-Key" in answer.json()["error"]
        assert refused is not is_valid(schema, key), (key, answer.content)
