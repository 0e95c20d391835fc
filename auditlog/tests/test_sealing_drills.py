"""Sealers that are killed, or work at once, while entries commit late or not at all: the tree stays whole."""

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import pytest
from django.db import connection, connections

from auditlog.models import AuditEntry, Leaf, PendingEntry, SignedHead
from auditlog.sealing import keys, sealer
from auditlog.sealing.stored_rows import sealed_between
from auditlog.sealing.tree import StoredTiles, head
from auditlog.tests.factories import make_entries
from auditlog.tests.log_keys import root_of
from auditlog.tlog.checkpoints import Checkpoint
from auditlog.tlog.merkle import consistency_path, verify_consistency
from auditlog.tlog.notes import Note, verified
from auditlog.vocabulary import Actor
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.waiting import eventually, kill

pytestmark = [pytest.mark.drill, pytest.mark.usefixtures("committed")]

KILLS = 30
WRITERS = 3
SCRIPT = Path(__file__).with_name("sealers_alone.py")


class Abandoned(Exception):
    """A transaction that rolls back."""


class Sealers:
    """Starts sealers, each a process."""

    def __init__(self, server: "subprocess.Popen[str]") -> None:
        self._server = server
        self._started: list[int] = []

    def start(self, way: str) -> int:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(f"{way}\n")
        self._server.stdin.flush()
        self._started.append(int(self._server.stdout.readline()))
        return self._started[-1]

    def kill_all(self) -> None:
        kill(*self._started)


@pytest.fixture
def sealers() -> Iterator[Sealers]:
    keys.bootstrap(actor=Actor.system("drill"), now=now())
    command = [sys.executable, str(SCRIPT), str(connection.settings_dict["NAME"])]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path.cwd(),
        env=os.environ | {"LOG_LEVEL": "ERROR"},
    ) as server:
        found = Sealers(server)
        yield found
        found.kill_all()


class Writers:
    """Threads that record: some transactions commit late, every eighth rolls back."""

    def __init__(self) -> None:
        self.committed: list[UUID] = []
        self.abandoned: list[UUID] = []
        self._stopped = threading.Event()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._write) for _ in range(WRITERS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            for thread in threads:
                thread.join()

    def _write(self) -> None:
        with environments.use(Environment.LIVE):
            while not self._stopped.is_set():
                with suppress(Abandoned):
                    self._write_once()
            connections.close_all()

    def _write_once(self) -> None:
        is_abandoned = random.random() < 1 / 8
        with environments.atomic():
            ids = [entry.id for entry in make_entries(random.randint(1, 4))]
            (self.abandoned if is_abandoned else self.committed).extend(ids)
            time.sleep(random.choice([0, 0, 0.002, 0.05]))
            if is_abandoned:
                raise Abandoned


def test_killed_sealers_leave_a_whole_tree(sealers: Sealers) -> None:
    writers = Writers()

    with writers.at_work():
        alive = [sealers.start("rounds"), sealers.start("task")]
        for number in range(KILLS):
            time.sleep(random.uniform(0.02, 0.4))
            kill(alive.pop(number % 2))
            alive.insert(number % 2, sealers.start(("rounds", "task")[number % 2]))
    sealers.kill_all()

    heads = assert_tree_is_whole(writers)
    sys.stderr.write(f"\n{KILLS} kills, {len(writers.committed)} entries, {heads} checkpoints\n")
    assert heads > KILLS / 2


def test_two_sealers_at_once_seal_each_entry_once(sealers: Sealers) -> None:
    writers = Writers()

    for _ in range(2):
        sealers.start("rounds")
    with writers.at_work():
        assert eventually(lambda: len(writers.committed) > 500, seconds=30)
    assert eventually(lambda: not PendingEntry.objects.exists(), seconds=30)
    sealers.kill_all()

    assert_tree_is_whole(writers)


def test_open_transaction_holds_nobody_else_up(sealers: Sealers) -> None:
    sealers.start("task")
    writers = Writers()

    with environments.atomic():
        (held,) = make_entries()
        with writers.at_work():
            assert eventually(lambda: len(writers.committed) > 200, seconds=30)
        others = set(writers.committed)
        assert eventually(lambda: indexes_of(others).keys() == others, seconds=30)
        assert not indexes_of({held.id})
        highest = max(indexes_of(others).values())
    assert eventually(lambda: bool(indexes_of({held.id})), seconds=30)
    sealers.kill_all()

    assert indexes_of({held.id})[held.id] > highest
    assert_tree_is_whole(writers)


def indexes_of(entries: set[UUID]) -> dict[UUID, int]:
    return dict(Leaf.objects.filter(entry_id__in=entries).values_list("entry_id", "index"))


def assert_tree_is_whole(writers: Writers) -> int:
    """Each committed entry is one leaf, and each checkpoint is of the first so many leaves; their number."""
    sealer.seal_all()
    sealer.sign_head(now=now())
    size = head().size
    leaves = list(Leaf.objects.order_by("index").values_list("index", "entry_id"))
    entries = [entry for _, entry in leaves]
    assert [index for index, _ in leaves] == list(range(size))
    assert len(set(entries)) == size
    assert set(AuditEntry.objects.values_list("id", flat=True)) == set(entries)
    assert set(writers.committed) <= set(entries)
    assert set(writers.abandoned).isdisjoint(entries)
    assert not PendingEntry.objects.exists()
    heads = list(SignedHead.objects.order_by("size"))
    assert heads[-1].size == size
    assert_signed_heads_agree(heads)
    return len(heads)


def assert_signed_heads_agree(heads: list[SignedHead]) -> None:
    """With the leaves, and by a consistency proof with the checkpoint before."""
    stored, verifiers = StoredTiles(), keys.verifier_keys(now=now())
    leaves = [entry.hash() for entry in sealed_between(0, heads[-1].size)]
    for signed in heads:
        note = Note.parse(signed.note)
        checkpoint = Checkpoint.parse(note.text)
        assert verified(note, verifiers)
        assert checkpoint.root == bytes(signed.root) == root_of(leaves[: signed.size])
        assert checkpoint.size == signed.size
    for old, new in pairwise(heads):
        path = consistency_path(old.size, new.size, stored.subtree)
        verify_consistency(old.size, bytes(old.root), new.size, bytes(new.root), path)
