"""Requests generated from the service's own description.

Schemathesis follows from answer to request (a created agent is certified, its certificate revoked, …).
"""

import contextlib
from collections import Counter
from typing import Any

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
from bench.attack.wire import Line, Reply, call
from bench.attack.world import World

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
STEPS = 30
SCENARIOS = 40
"""Scenarios of a round, each with a seed of its own."""


class Enough(Exception):
    """The cases, or the time, are used up."""


def run(siege: Siege, world: World) -> None:
    """Rounds of scenarios until the cases or the time are used up."""
    cases = siege.pick(short=150, long=20_000)
    with Line(siege, timeout=30) as line:
        described = line.ask(call("GET", "/v1/schema")).json
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
            if sent >= cases or siege.budget.is_over:
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
        max_examples=SCENARIOS, stateful_step_count=STEPS, deadline=None, database=None,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    rounds = 0
    while sent < cases and not siege.budget.is_over:
        seed(siege.seed + rounds)(Machine)
        rounds += 1
        # A service's answers differ from run to run, which Hypothesis calls flaky: the next round goes on.
        with contextlib.suppress(Enough, Flaky):
            Machine.run(settings=machine_settings)
    if sent < cases:
        siege.notebook.left_out(siege.name, f"of {cases:,} cases", cases - sent)
    told = ", ".join(f"{count:,} answers of {kind}xx" for kind, count in sorted(classes.items()))
    siege.figures.append(f"generated: {sent:,} cases by Schemathesis, stateful, in {rounds:,} rounds: {told}")


def _note(siege: Siege, where: str, failure: BaseException, reply: Reply) -> None:
    title = getattr(failure, "title", type(failure).__name__)
    siege.report(f"{title} ({reply.status})", where, f"{str(failure)[:300]} → {reply}")
