"""The house's rules, held against the code itself."""

import ast
import io
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connections
from django.db.migrations.loader import MigrationLoader

from bench.attack.attacks import NAMES

ROOT = Path(settings.BASE_DIR)

# Each room may import from itself and from those before it.
ORDER = [
    "compliance",
    "auditlog",
    "people",
    "tenancy",
    "webhooks",
    "incidents",
    "agents",
    "certificates",
    "events",
    "delegation",
    "signals",
    "gateway",
    "reports",
    "wiring",
]
WIRING = {
    "compliance.urls",
    "compliance.celery",
    "deploy.release.__main__",
    "compliance.wsgi",
    "compliance.serving.application",
    "compliance.serving.endpoints",
    "ops",
    "bench",
    "manage",
    "conftest",
}
# The whole of localdev runs before Django is installed.
STANDALONE = "compliance.localdev"
# The client package is installed without the service.
CLIENT = "sdk.src"


def modules(*, with_tests: bool = False) -> Iterator[tuple[str, Path]]:
    """Dotted name and path of every module of the service, migrations left out."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for line in listed.stdout.splitlines():
        path = ROOT / line
        if not path.exists() or "migrations" in path.parts or ("tests" in path.parts and not with_tests):
            continue
        if path.name == "conftest.py" and not with_tests:
            continue
        yield ".".join(Path(line).with_suffix("").parts).removesuffix(".__init__"), path


def room_of(module: str) -> str | None:
    """The room a dotted name belongs to; None for what is not ours."""
    if any(module == name or module.startswith(name + ".") for name in WIRING):
        return "wiring"
    rooms = [room for room in ORDER if module == room or module.startswith(room + ".")]
    return max(rooms, key=len) if rooms else None


def imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def test_rooms_import_only_leftwards() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for module, path in modules()
        if (room := room_of(module))
        for line, name in imports(path)
        if (other := room_of(name)) and ORDER.index(other) > ORDER.index(room)
    ]

    assert found == []


def test_rooms_of_the_benchmarks_import_in_one_direction() -> None:
    uses: dict[str, set[str]] = {}
    for module, path in modules():
        if module.startswith("bench."):
            room = bench_room(module)
            others = {bench_room(name) for _, name in imports(path) if name.startswith("bench.")}
            uses.setdefault(room, set()).update(others - {room})

    order = list(TopologicalSorter(uses).static_order())  # raises CycleError
    assert order.index("harness") < order.index("ingest")


def bench_room(name: str) -> str:
    """Return the folder or module below `bench` that a dotted name belongs to."""
    return name.split(".")[1]


def test_local_stack_imports_nothing_of_the_service() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for module, path in modules()
        if module.startswith(STANDALONE)
        for line, name in imports(path)
        if (room_of(name) or name.split(".")[0] in {"django", "rest_framework", "celery"})
        and not name.startswith(STANDALONE)
    ]

    assert found == []


def test_client_package_imports_nothing_of_the_service() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for module, path in modules()
        if module.startswith(CLIENT)
        for line, name in imports(path)
        if room_of(name)
    ]

    assert found == []


def test_no_import_stands_inside_a_function() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{inner.lineno}"
        for _, path in modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    ]

    assert found == []


NAMED_BY_DJANGO = {"Meta", "Command", "Media"}


def test_class_name_means_one_thing_in_the_house() -> None:
    found: dict[str, list[str]] = {}
    for module, path in modules():
        if module.startswith(("bench", "sdk")):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and node.name not in NAMED_BY_DJANGO:
                found.setdefault(node.name.lstrip("_"), []).append(module)

    assert {name: where for name, where in found.items() if len(where) > 1} == {}


def test_folders_are_small() -> None:
    """At most 16 files beside one another, `__init__.py` included; five in the project's own folder."""
    counts = Counter(
        path.parent.relative_to(ROOT).as_posix()
        for module, path in modules()
        if not module.startswith("bench")
    )

    assert {folder: count for folder, count in counts.items() if count > 16} == {}
    assert counts["compliance"] <= 5


FORBIDDEN = {
    "a bare transaction.atomic": re.compile(r"transaction\.atomic\b"),
    "a bare transaction.on_commit": re.compile(r"transaction\.on_commit\b"),
    "ATOMIC_REQUESTS": re.compile(r"ATOMIC_REQUESTS"),
    "a task started past enqueue()": re.compile(r"\.(delay|apply_async|delay_on_commit)\("),
    "print": re.compile(r"(?<![\w.])print\("),
    "a signal": re.compile(r"django\.dispatch|db\.models\.signals|@receiver"),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_forbidden_forms_stand_nowhere(what: str) -> None:
    # django-allauth tells of second factors by signals alone.
    allowed = {"environments.py"} if "transaction" in what else {"factors.py"} if "signal" in what else set()
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for module, path in modules()
        if path.name not in allowed and not (what == "print" and module.startswith((STANDALONE, "bench")))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if FORBIDDEN[what].search(line.split("#")[0])
        and not line.lstrip().startswith(('"', "`", "Django's bare"))
    ]

    assert found == []


def test_no_file_exceeds_500_lines() -> None:
    found = {
        str(path.relative_to(ROOT)): count
        for _, path in modules(with_tests=True)
        if "generated" not in path.parts and (count := len(path.read_text().splitlines())) > 500
    }

    assert found == {}


def test_every_module_says_what_it_is_for() -> None:
    found = [
        str(path.relative_to(ROOT))
        for _, path in modules()
        if path.read_text().strip()
        and not path.read_text().startswith("#!")
        and ast.get_docstring(ast.parse(path.read_text())) is None
    ]

    assert found == []


def test_migrations_are_complete() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


@pytest.mark.parametrize("alias", ["default", "test"])
def test_migrations_have_single_leaves_and_run_on_both_databases(alias: str) -> None:
    loader = MigrationLoader(connections[alias])
    leaves = [app for app, _ in loader.graph.leaf_nodes()]

    assert len(leaves) == len(set(leaves))
    assert set(loader.graph.leaf_nodes()) <= set(loader.applied_migrations)


def test_system_checks_pass() -> None:
    call_command("check", fail_level="WARNING", stderr=io.StringIO())


def test_api_description_has_no_warnings() -> None:
    out = io.StringIO()

    call_command("spectacular", fail_on_warn=True, validate=True, stdout=out)

    assert "openapi: 3.0.3" in out.getvalue()


# These run before the settings load, or hand the environment on.
READS_THE_ENVIRONMENT = {
    "compliance.settings.declaring",
    # prometheus_client takes its folder from there.
    "compliance.observing.metrics",
    "ops.management.commands.demo",
    "ops.management.commands.key_host",
    "compliance.keys.pkcs11.module",
    "compliance.keys.pkcs11.provisioning",
    "compliance.keys.pkcs11.softhsm",
    "compliance.wsgi",
    "compliance.celery",
    "deploy.release.__main__",
    "deploy.release.client_package",
    "compliance.serving.config",
    "events.risk.compiling",
    "manage",
    "conftest",
}


def test_no_variable_is_read_without_a_declaration() -> None:
    found = [
        module
        for module, path in modules()
        if not module.startswith((STANDALONE, "bench", "sdk"))
        and module not in READS_THE_ENVIRONMENT
        and re.search(r"\b(os\.environ|getenv)\b", path.read_text())
    ]

    assert found == []


def test_every_decision_is_numbered_short_and_listed() -> None:
    folder = ROOT / "docs/decisions"
    index = (folder / "README.md").read_text()
    records = {path: path.read_text() for path in sorted(folder.glob("[0-9]*.md"))}

    assert [path.name for path, text in records.items() if not text.startswith(f"# {path.name[:4]}. ")] == []
    assert [path.name for path, text in records.items() if len(text.split()) > 150] == []
    assert [path.name for path in records if f"]({path.name})" not in index] == []


def test_every_security_promise_names_tests_that_exist() -> None:
    text = (ROOT / "docs/security.md").read_text()
    tables = re.findall(r"\| Promise \| Held by \|\n\|---\|---\|\n((?:\|.*\n)+)", text)
    promises = [row for table in tables for row in table.splitlines()]
    named = re.findall(r"`([\w/]+/test_\w+\.py)(?:::(test_\w+))?`", text)

    missing = [
        f"{path}::{test}"
        for path, test in named
        if not (ROOT / path).exists() or (test and f"def {test}(" not in (ROOT / path).read_text())
    ]

    assert missing == []
    assert set(re.findall(r"attack: (\w+)", text)) - {"name"} <= set(NAMES)
    assert len(promises) > 40
    assert [row for row in promises if not re.search(r"attack: \w|/test_\w+\.py", row)] == []
