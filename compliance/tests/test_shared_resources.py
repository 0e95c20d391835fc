"""Every lock, pool, queue and thread of the service is shared by tenants' shares, or needs none."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from compliance.celery import PERIODS_SECONDS
from compliance.core.tasks import app
from compliance.tests.test_project import ROOT, modules

PRIMITIVES: Final = {
    *("Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Barrier", "Thread", "Timer"),
    *("ThreadPoolExecutor", "ProcessPoolExecutor", "Pool", "Queue", "LifoQueue", "PriorityQueue"),
    *("SimpleQueue", "CallThreads", "Batcher", "to_thread"),
}
ELSEWHERE: Final = ("bench", "sdk", "deploy", "compliance.localdev", "ops.demo")
BY_SHARE: Final = "a slot of SharedSlots is held around each use"
BEHIND_SHARES: Final = "used by requests that hold a slot of SharedSlots already, and for a bounded time"
IN_SQL: Final = "claims are shared between tenants by the statement that takes them"
MEMORY: Final = "held for operations on memory only"
ONCE: Final = "held while one thing is read or made that serves all tenants, however many ask"
STARTING: Final = "used while a process starts or ends, or by a command"
SERVICE: Final = "the service's own work, which no tenant adds to"
GROUPS: Final = "what waits is taken together, and what takes longer than its group leaves it (`Deferred`)"

REASONS: Final = {
    BY_SHARE: {
        "compliance/serving/django_process.py: threads",
        "compliance/serving/executors.py: self._threads",
    },
    IN_SQL: {"compliance/outbound/loop.py: _turn", "compliance/outbound/http_client.py: thread"},
    BEHIND_SHARES: {
        "compliance/keys/hosts/server.py: _accept",
        "compliance/keys/hosts/server.py: self._connections",
        "compliance/keys/pkcs11/backend.py: self.calls",
        "compliance/keys/pkcs11/backend.py: self._generations",
        "compliance/keys/pkcs11/call_threads.py: run",
        "compliance/keys/pkcs11/call_threads.py: self._idle",
        "compliance/keys/pkcs11/call_threads.py: self._queue",
        "compliance/keys/pkcs11/call_threads.py: self._slots",
        "delegation/issuers/fetching.py: self._lock",
        "events/otlp/reading.py: _decoding",
    },
    GROUPS: {
        "compliance/serving/executors.py: self._groups",
        "compliance/serving/executors.py: self._thread",
        "compliance/serving/fast_path.py: self._counts",
        "tenancy/key_lookup.py: self._thread",
    },
    MEMORY: {
        "compliance/api/rate_limits.py: self._lock",
        "compliance/core/bounded_cache.py: self._lock",
        "compliance/core/circuit_breaker.py: self._lock",
        "compliance/core/shares.py: self._lock",
        "compliance/keys/hosts/backend.py: self._lock",
        "compliance/keys/pkcs11/backend.py: self._lock",
        "compliance/keys/pkcs11/module.py: self._condition",
        "compliance/observing/logs.py: self._lock",
        "compliance/observing/metrics.py: _gathering",
        "delegation/issuers/fetching.py: _finding",
        "compliance/outbound/loop.py: self._finished",
    },
    ONCE: {
        "compliance/api/health.py: self._asking",
        "compliance/keys/pkcs11/module.py: self._load_lock",
        "compliance/keys/pkcs11/token.py: self._lock",
        "compliance/keys/registry.py: _lock",
        "delegation/issued/status_lists.py: _lock",
        "delegation/issued/status_lists.py: _making",
        "delegation/token_keys/keyring.py: self._lock",
    },
    STARTING: {
        "compliance/core/tasks.py: app.conf.task_queues",  # TASKS
        "compliance/serving/executors.py: close",
        "compliance/serving/executors.py: together",
        "events/risk/compiling.py: compile_scorer",
        "compliance/outbound/loop.py: run",
        "compliance/outbound/loop.py: threads",
    },
    SERVICE: {
        "auditlog/submitting/gathering.py: _submitted",
        "auditlog/witness/cosigning.py: self._locks",
        "compliance/observing/metrics_server.py: start",
        "events/risk/evaluation/policy.py: _applying",  # a step of `events.simulate`
    },
}
# Tasks that do not run by the clock: requests of tenants have them sent.
TASKS: Final = {
    "auditlog.seal": "urgent; one round seals what waits of all tenants",
    "certificates.publish_crl": "urgent; one for each authority at a time, whatever was revoked",
    "certificates.fill_key_pool": "one at a time, for all tenants",
    "certificates.renew_of_blueprint": "one portion of a renewal, then it goes to the end of the queue",
    "stops.work": "urgent; one portion, then it goes to the end of the queue",
    "reviews.work": "one portion, then it goes to the end of the queue",
    "reports.generate": "a tenant has few that wait, made turn by turn over the tenants",
    "events.simulate": "a tenant has one simulation, in short steps that go to the end of the queue",
}


def found() -> dict[str, set[str]]:
    """Return the primitives of each place, as `module: target`."""
    places: dict[str, set[str]] = {}
    for module, path in modules():
        if not module.startswith(ELSEWHERE):
            for place, name in _calls(path):
                places.setdefault(f"{path.relative_to(ROOT)}: {place}", set()).add(name)
    return places


def _calls(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each call of a primitive, and what it is bound to or the function that makes it."""

    def walk(node: ast.AST, place: str) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            place = node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            place = ast.unparse(target)
        elif isinstance(node, ast.Call):
            made = node.func.value if isinstance(node.func, ast.Subscript) else node.func
            name = made.attr if isinstance(made, ast.Attribute) else getattr(made, "id", "")
            if name in PRIMITIVES:
                yield place, name
        for child in ast.iter_child_nodes(node):
            yield from walk(child, place)

    yield from walk(ast.parse(path.read_text()), "")


def test_every_shared_resource_has_shares_or_a_reason_why_it_needs_none() -> None:
    reasoned = [place for places in REASONS.values() for place in places]

    assert found().keys() == set(reasoned)
    assert len(reasoned) == len(set(reasoned))


def test_slots_are_counted_by_the_one_mechanism() -> None:
    """What a semaphore counts has no holders."""
    counted = {place for place, names in found().items() if names & {"Semaphore", "BoundedSemaphore"}}

    assert counted <= REASONS[BEHIND_SHARES]


def test_every_task_that_requests_send_has_a_reason_why_it_holds_up_nobody() -> None:
    app.loader.import_default_modules()
    ours = {name for name in app.tasks if not name.startswith(("celery.", "tests."))}

    assert ours - PERIODS_SECONDS.keys() <= TASKS.keys() <= ours
