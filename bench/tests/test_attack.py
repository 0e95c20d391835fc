"""The attack program: what it refuses to attack, what it knows of the API, what its short run finds."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest
from django.conf import settings

from bench.attack import session
from bench.attack.attacks import NAMES
from bench.attack.core import Address, Budget, Notebook, NotLoopback, Siege, loopback
from bench.attack.invariants import STANDING, broken
from bench.attack.protocol_cases import End, Frame, cases
from bench.attack.routes import api_routes, lacking
from bench.attack.values import changed, garbled, hostile_bodies
from bench.attack.wire import Reply
from compliance.tests.stack import CONTRACT

SEED = 17
STANDING_HEADERS = tuple((name, "x") for name in STANDING)
JSON = (("content-type", "application/json"), *STANDING_HEADERS)
FRAME = Frame(host=b"127.0.0.1", key=b"k", claim=b"c", body=b'{"a":1}', lines=b"{}\n{}\n")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1"])
def test_loopback_may_be_attacked(host: str) -> None:
    assert loopback(host, 80).host == host


@pytest.mark.parametrize(
    "host",
    [
        "192.0.2.1",
        "0.0.0.0",  # noqa: S104
        "10.0.0.1",
        "::",
        "2001:db8::1",
        "169.254.169.254",
    ],
)
def test_every_other_address_is_refused(host: str) -> None:
    with pytest.raises(NotLoopback):
        loopback(host, 80)


def test_session_ends_before_it_sends_anything_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    code = session.main(["--host", "192.0.2.1", "--port", "80", "--seed", "1"])

    assert code == 1
    assert "only loopback" in capsys.readouterr().err


def test_every_attack_has_a_name_and_every_name_an_attack() -> None:
    assert list(session.ATTACKS) == list(NAMES)


def test_a_valid_request_is_known_of_every_operation() -> None:
    assert lacking(api_routes()) == []


def test_no_two_protocol_cases_share_a_name() -> None:
    names = [case.name for case in cases(FRAME)]

    assert len(names) == len(set(names)) >= 200


@pytest.mark.parametrize(("seconds", "done"), [(0, []), (600, [1, 2, 3])])
def test_what_the_clock_leaves_out_stands_below_the_table(seconds: float, done: list[int]) -> None:
    notebook = Notebook()
    siege = Siege(
        name="fuzz", address=Address("127.0.0.1", 9), seed=SEED, is_short=True, budget=Budget.of(seconds),
        notebook=notebook, figures=[],
    )  # fmt: skip

    assert list(siege.within([1, 2, 3], "requests")) == done

    told = [line for line in session._summary(notebook, {"fuzz": 0.1}, [], SEED) if "not reached" in line]
    assert told == ([] if done else ["fuzz: not reached: 3 requests"])


def test_no_attack_watches_the_clock_by_itself() -> None:
    sources = (settings.BASE_DIR / "bench/attack").glob("*.py")

    # A share of an attack that ends early without `within()` would be silent about what it left out.
    watching = {path.name for path in sources if "siege.budget" in path.read_text()}
    assert watching <= {"generated.py"}


def test_a_case_without_its_end_expects_no_success() -> None:
    cut = [case for case in cases(FRAME) if case.end is not End.WAIT and case.name.startswith("cut off")]

    assert len(cut) >= 36
    assert not any(case.is_whole or case.allowed & {200, 201} for case in cut)


def test_changes_can_always_be_written_as_json() -> None:
    chance = Random(1)

    for _ in range(3_000):
        assert json.dumps(changed(chance, {"a": [1, {"b": "c"}], "d": "e"}))


def test_a_seed_repeats_what_is_sent() -> None:
    def sent(seed: int) -> list[object]:
        chance = Random(seed)
        body = {"a": [1, {"b": "c"}], "d": "e"}
        return [changed(chance, body), garbled(chance, b"abcdef" * 20), list(hostile_bodies(chance, body))]

    assert sent(1) == sent(1) != sent(2)


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        (Reply(200, STANDING_HEADERS, b"{}"), ""),
        (Reply(400, JSON, b'{"error":"no"}'), ""),
        (Reply(503, JSON, b'{"error":"At capacity; retry with backoff"}'), ""),
        (Reply(500, JSON, b'{"error":"no"}'), "a 500"),
        (Reply(503, JSON, b'{"error":"The database is unavailable"}'), "a 503"),
        (Reply(400, STANDING_HEADERS, b""), "an error 400 of type (none)"),
        (Reply(404, JSON, b'{"error":"no","more":1}'), "an error 404 out of the envelope"),
        (Reply(404, JSON, b'{"error":""}'), "an error 404 out of the envelope"),
        (Reply(404, JSON, b"[1]"), "an error 404 out of the envelope"),
        (Reply(418, JSON, b'{"error":"no"}'), "an undocumented 418"),
        (Reply(200, (*STANDING_HEADERS, ("set-cookie", "a=b")), b"{}"), "a cookie"),
        (Reply(200, STANDING_HEADERS[1:], b"{}"), "a 200 without x-content-type-options"),
        (Reply(404, JSON, b'{"error":"Traceback (most recent call last)"}'), "the body tells of the inside"),
        (Reply(400, (*JSON[:1], ("connection", "close")), b'{"error":"no"}'), ""),
    ],
)
def test_broken_promises_are_seen(reply: Reply, rule: str) -> None:
    assert list(broken(reply, documented={200, 404, 500, 503})) == ([rule] if rule else [])


@pytest.mark.slow
@pytest.mark.drill
def test_short_attack_finds_nothing(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not CONTRACT.fullmatch(name)}
    try:
        done = subprocess.run(
            [str(settings.BASE_DIR / "run"), "attack", "--short", "--seed", str(SEED)],
            env={**environment, "LOCAL_DIR": str(tmp_path)}, cwd=settings.BASE_DIR, capture_output=True,
            stdin=subprocess.DEVNULL, text=True, timeout=600, check=False,
        )  # fmt: skip
    finally:
        shutil.rmtree(tmp_path, ignore_errors=True)

    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-4_000:]
