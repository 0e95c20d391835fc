"""The scorer compiled says what it says as Python, to the last bit."""

import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.conf import settings

from compliance.compiling import runs_compiled
from compliance.compiling.__main__ import package_named
from compliance.compiling.building import CannotCompile, build, find_compiler
from events.checks import check_compiled
from events.scoring.priors import PRIORS
from events.tests.scored_stream import stream


def said(compiled: str) -> tuple[list[str], str]:
    """What a process of its own says of the stream: the package's path, and the digest."""
    done = subprocess.run(
        [sys.executable, "-m", "events.tests.scored_stream"],
        cwd=settings.BASE_DIR,
        env={**os.environ, "COMPILED": compiled},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    return found["path"], found["digest"]


def test_stream_has_all_types() -> None:
    assert Counter(event.action_type for _, event in stream()).keys() == PRIORS.keys()


def test_compiled_and_interpreted_scorer_say_the_same() -> None:
    try:
        find_compiler()
    except CannotCompile as reason:
        pytest.skip(str(reason))
    build(package_named("events.scoring"))

    with ThreadPoolExecutor(2) as pool:
        (compiled, digest), (interpreted, expected) = pool.map(said, ["1", "0"])

    assert runs_compiled(compiled)
    assert not runs_compiled(interpreted)
    assert digest == expected


@pytest.mark.parametrize(("compiled", "found"), [(True, []), (False, ["events.W002"])])
def test_check_of_a_deployment_warns_of_an_interpreted_scorer(
    compiled: bool, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ["events/scoring/__pycache__/compiled-0", "events/scoring"] if compiled else ["events/scoring"]
    monkeypatch.setattr("events.scoring.__path__", path)

    assert [message.id for message in check_compiled()] == found
