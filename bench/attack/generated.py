"""Requests generated from the service's own description.

A long run has Schemathesis follow from answer to request (a created agent is certified, its certificate
revoked, …). A short one asks every operation a few times, with values of the schema alone.
"""

import contextlib
import json
from collections import Counter
from random import Random
from typing import Any
from urllib.parse import quote
from uuid import UUID

import schemathesis
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.errors import Flaky
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from bench.attack.core import Siege
from bench.attack.invariants import OF_THE_SERVER, check
from bench.attack.values import TEXTS
from bench.attack.wire import Line, NoAnswer, Reply, call
from bench.attack.world import Holdings, World, furnish

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
CASES = 20_000
STEPS = 30
SCENARIOS = 40
"""Scenarios of a round, each with a seed of its own."""
Described = dict[str, Any]


class Enough(Exception):
    """The cases, or the time, are used up."""


def run(siege: Siege, world: World) -> None:
    """Schemathesis in the long run, our own small generator in the short one."""
    with Line(siege, timeout=30) as line:
        described = line.ask(call("GET", "/v1/schema")).json
        if siege.is_short:
            _short(siege, line, described, world)
            return
    _long(siege, described, world)


def _long(siege: Siege, described: Described, world: World) -> None:
    base = f"http://{siege.address.host}:{siege.address.port}"
    described["servers"] = [{"url": base}]
    with contextlib.suppress(Exception):
        schemathesis.serializer.alias("application/ocsp-request", "application/octet-stream")
    schema = schemathesis.openapi.from_dict(described)
    schema.config.update(base_url=base)
    machine: Any = schema.as_state_machine()
    sent, classes = 0, Counter[int]()

    class Machine(machine):
        """Notes what the checks find and goes on."""

        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            nonlocal sent
            if sent >= CASES or siege.budget.is_over:
                raise Enough
            sent += 1
            siege.sent()
            key = world.keys.test if sent % 4 == 0 else world.keys.live
            return {"headers": {"Authorization": f"Bearer {key}"}, "timeout": 10}

        def validate_response(self, response: Any, case: Any, *args: Any, **kwargs: Any) -> None:
            where = f"{case.method} {case.path}"
            classes[response.status_code // 100] += 1
            reply = Reply(
                response.status_code,
                tuple((name.lower(), value[0]) for name, value in response.headers.items()),
                response.content or b"",
            )
            check(siege, reply, where, where=where, is_bodiless=case.method == "HEAD")
            if response.status_code in OF_THE_SERVER:
                return  # the server's own, told of once for all operations
            try:
                case.validate_response(response, checks=CHECKS)
            except FailureGroup as group:
                for failure in group.exceptions:
                    _note(siege, where, failure, reply)
            except Failure as failure:
                _note(siege, where, failure, reply)

    machine_settings = settings(
        max_examples=SCENARIOS,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    rounds = 0
    while sent < CASES and not siege.budget.is_over:
        seed(siege.seed + rounds)(Machine)
        rounds += 1
        # A service's answers differ from run to run, which Hypothesis calls flaky: the next round goes on.
        with contextlib.suppress(Enough, Flaky):
            Machine.run(settings=machine_settings)
    if sent < CASES:
        siege.notebook.left_out(siege.name, f"of {CASES:,} cases", CASES - sent)
    told = ", ".join(f"{count:,} answers of {kind}xx" for kind, count in sorted(classes.items()))
    siege.figures.append(f"generated: {sent:,} cases by Schemathesis, stateful, in {rounds:,} rounds: {told}")


def _note(siege: Siege, where: str, failure: BaseException, reply: Reply) -> None:
    title = getattr(failure, "title", type(failure).__name__)
    siege.report(f"{title} ({reply.status})", where, f"{str(failure)[:300]} → {reply}")


def _short(siege: Siege, line: Line, described: Described, world: World) -> None:
    chance = siege.random()
    owned = {key: furnish(siege, line, key) for key in (world.keys.live, world.keys.test)}
    asked = [
        (path, method.upper(), operation)
        for _ in range(8)
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    ]
    for path, method, operation in siege.within(asked, "requests"):
        key = chance.choice(list(owned))
        _ask(siege, line, described, path, method, operation, chance, key, owned[key])


def _ask(
    siege: Siege,
    line: Line,
    described: Described,
    path: str,
    method: str,
    operation: Described,
    chance: Random,
    key: str,
    holdings: Holdings,
) -> None:
    where = f"{method} {path}"
    target, headers, query = path, [], []
    for parameter in operation.get("parameters", ()):
        name, value = parameter["name"], _parameter(chance, described, parameter)
        if parameter["in"] == "path":
            known = _known(holdings, name)
            text = known if known is not None and chance.random() < 0.8 else _quoted(value)
            target = target.replace("{" + name + "}", text)
        elif chance.random() < 0.4:
            if parameter["in"] == "query":
                query.append(f"{name}={_quoted(value)}")
            else:
                headers.append((name, f"k{chance.randrange(1 << 40)}"))
    content = operation.get("requestBody", {}).get("content", {})
    body = (
        _made(chance, described, content["application/json"]["schema"])
        if "application/json" in content
        else None
    )
    asked = call(
        method, target + ("?" + "&".join(query) if query else ""), key=key, body=body, headers=headers
    )
    try:
        reply = line.ask(asked)
    except NoAnswer:
        siege.report("no answer", where, str(asked))
        return
    documented = frozenset(int(status) for status in operation["responses"])
    check(siege, reply, asked, where=where, documented=documented)
    _check_type(siege, reply, operation, where)


def _check_type(siege: Siege, reply: Reply, operation: Described, where: str) -> None:
    answer = operation["responses"].get(str(reply.status), {})
    kind = (reply.header("content-type") or "").partition(";")[0]
    if answer.get("content") and kind not in answer["content"]:
        siege.report(f"a {reply.status} of undocumented type {kind}", where, str(reply))


def _quoted(value: Any) -> str:
    return quote(str(value).encode("utf-8", "surrogatepass"), safe="")


def _known(holdings: Holdings, name: str) -> str | None:
    try:
        return holdings.value(name)
    except KeyError:
        return None


def _parameter(chance: Random, described: Described, parameter: Described) -> Any:
    return _made(chance, described, parameter.get("schema", {}))


def _made(chance: Random, described: Described, schema: Described, depth: int = 0) -> Any:
    """A value of the schema; bounds, lengths and required members are kept, patterns are not."""
    if "$ref" in schema:
        found = described
        for step in schema["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        return _made(chance, described, found, depth)
    for choice in ("oneOf", "anyOf"):
        if choice in schema:
            return _made(chance, described, chance.choice(schema[choice]), depth)
    if "allOf" in schema:
        return _made(chance, described, schema["allOf"][0], depth)
    if schema.get("nullable") and chance.random() < 0.1:
        return None
    if "enum" in schema:
        return chance.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "object":
        return _object(chance, described, schema, depth)
    if kind == "array":
        least, most = schema.get("minItems", 0), min(schema.get("maxItems", 3), 3)
        count = chance.randint(least, max(least, most))
        return [_made(chance, described, schema.get("items", {}), depth + 1) for _ in range(count)]
    return _scalar(chance, schema, kind)


def _object(chance: Random, described: Described, schema: Described, depth: int) -> Any:
    required = set(schema.get("required", ()))
    found = {
        name: _made(chance, described, inner, depth + 1)
        for name, inner in schema.get("properties", {}).items()
        if not inner.get("readOnly") and (name in required or chance.random() < 0.6)
    }
    if schema.get("additionalProperties") and depth < 3:
        found |= {f"m{number}": chance.choice([1, "x", None, True]) for number in range(chance.randrange(3))}
    return found


def _scalar(chance: Random, schema: Described, kind: str | None) -> Any:
    if kind == "boolean":
        return chance.random() < 0.5
    if kind in ("integer", "number"):
        least, most = schema.get("minimum", -10), schema.get("maximum", 10**6)
        number = chance.randint(int(least), int(most))
        return number if kind == "integer" else number + chance.random()
    if kind is None:
        return chance.choice([1, "x", None, True, [], {}, [1, {"a": 2}]])
    if schema.get("format") == "uuid":
        return str(UUID(int=chance.getrandbits(128)))
    if schema.get("format") in ("date-time", "date"):
        return f"20{chance.randrange(10, 27)}-0{chance.randrange(1, 10)}-1{chance.randrange(10)}T00:00:00Z"
    if schema.get("format") == "uri":
        return "http://127.0.0.1:9/hook"
    least, most = schema.get("minLength", 0), schema.get("maxLength", 300)
    text = chance.choice([*TEXTS, json.dumps({"a": 1})])[:most]
    return text + "x" * (least - len(text))
