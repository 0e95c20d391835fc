"""What sealing stands on goes away, in a stack of its own: entries are sealed and signed once it is back."""

from base64 import b64decode

import psycopg
import pytest
import requests

from auditlog.tlog.checkpoints import Checkpoint
from auditlog.tlog.merkle import verify_consistency
from auditlog.tlog.notes import Note, VerifierKey, verified
from compliance.tests.stack import HEAL_SECONDS, Stack
from compliance.tests.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.drill]

SEAL_SECONDS = 3 * HEAL_SECONDS


def checkpoint(stack: Stack) -> Checkpoint:
    """The newest one, its signature verified."""
    keys = [VerifierKey.parse(line) for line in fetch(stack, "/keys").text.splitlines()]
    note = Note.parse(fetch(stack, "/checkpoint").text)
    assert verified(note, keys)
    return Checkpoint.parse(note.text)


def fetch(stack: Stack, path: str, *, key: str | None = None) -> requests.Response:
    """Ask until the answer is not 503: after an outage each process finds out by itself."""
    answers = [stack.call("GET", f"/v1/audit-log{path}", key=key)]

    def is_up() -> bool:
        if answers[-1].status_code == 503:
            answers.append(stack.call("GET", f"/v1/audit-log{path}", key=key))
        return answers[-1].status_code != 503

    assert eventually(is_up, seconds=HEAL_SECONDS)
    return answers[-1]


def new_entry(stack: Stack) -> str:
    """The id of the entry of an agent's registration."""
    assert eventually(lambda: stack.register().status_code == 201, seconds=HEAL_SECONDS)
    newest: str = fetch(stack, "", key="LIVE_API_KEY").json()["data"][0]["id"]
    return newest


def proof_status(stack: Stack, entry: str) -> int:
    return fetch(stack, f"/{entry}/proof", key="LIVE_API_KEY").status_code


def assert_is_proved_in_time(stack: Stack, entry: str, *, since: Checkpoint) -> None:
    """The entry gets its proof, and the tree begins with the one of before."""
    assert eventually(lambda: proof_status(stack, entry) == 200, seconds=SEAL_SECONDS)
    newest = checkpoint(stack)
    found = fetch(stack, f"/consistency?from={since.size}&to={newest.size}").json()["data"]
    path = [b64decode(each) for each in found["hashes"]]
    assert newest.size > since.size
    verify_consistency(since.size, since.root, newest.size, newest.root, path)


def is_sealed(stack: Stack, entry: str) -> bool:
    with psycopg.connect(stack.exports["DATABASE_OWNER_URL"]) as connection:
        return bool(connection.execute("SELECT FROM auditlog_leaf WHERE entry_id = %s", [entry]).rowcount)


def test_redis_away(stack: Stack) -> None:
    before = checkpoint(stack)
    stack.stop("redis")

    entry = new_entry(stack)
    meanwhile = proof_status(stack, entry)
    stack.start("redis")

    # A round of sealing that was under way may still have taken the entry along.
    assert meanwhile in {200, 425}
    assert_is_proved_in_time(stack, entry, since=before)


def test_database_restarted(stack: Stack) -> None:
    before = checkpoint(stack)
    earlier = new_entry(stack)

    stack.stop("postgres")
    stack.start("postgres")
    later = new_entry(stack)

    assert_is_proved_in_time(stack, earlier, since=before)
    assert_is_proved_in_time(stack, later, since=before)


def test_hsm_away(stack: Stack) -> None:
    before = checkpoint(stack)
    away = stack.tokens.with_name("away")
    stack.tokens.rename(away)

    try:
        entry = new_entry(stack)
        is_sealed_meanwhile = eventually(lambda: is_sealed(stack, entry), seconds=SEAL_SECONDS)
        meanwhile = proof_status(stack, entry)
    finally:
        away.rename(away.with_name("tokens"))

    assert is_sealed_meanwhile
    assert meanwhile == 425
    assert_is_proved_in_time(stack, entry, since=before)
