"""A witness killed at any moment: all that it ever cosigned belongs to one growing tree."""

import random
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from threading import Timer

import pytest

from auditlog.tests.log_keys import NumberTree
from auditlog.tests.witness_process import LOG, WitnessProcess, make_request, start_witness
from auditlog.tlog.merkle import verify_consistency
from auditlog.tlog.notes import parse_signatures

pytestmark = pytest.mark.slow

KILLS = 12
# Equal up to 20 leaves: whichever is cosigned with more first is the one to stay with.
TREES = [NumberTree(), NumberTree(branch=1, fork=20), NumberTree(branch=2, fork=20)]
Seen = tuple[NumberTree, int]  # a cosigned tree and its size


class DishonestLog:
    """Submits trees that grow, shrink and fork, in random order, and keeps every cosignature it gets."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._guess = 0  # the size that the witness has
        self.cosigned: list[Seen] = []
        self.refused = 0

    def submit_until_lost(self, witness: WitnessProcess) -> None:
        with suppress(OSError, HTTPException):
            while True:
                self._submit(witness)

    def has_said_much(self) -> bool:
        return self._guess > 40 and self.refused > KILLS

    def _submit(self, witness: WitnessProcess) -> None:
        tree = self._chance.choice(TREES)
        old = self._chance.choice([self._guess, self._guess, self._guess, max(0, self._guess - 1), 0])
        new = max(0, old + self._chance.choice([-1, 0, 1, 1, 2, 5]))
        status, _, text = witness.add(make_request(old, new, tree=tree))
        if status == 409:
            self._guess = int(text)
        elif status == 200:
            witness.key.verify(tree.checkpoint(new).text(), parse_signatures(text)[0])
            self.cosigned.append((tree, new))
            self._guess = new
        else:
            assert status in {400, 422}
            self.refused += 1


def test_cosigned_trees_are_consistent_across_kills(tmp_path: Path) -> None:
    chance = random.Random(20)
    log = DishonestLog(chance)

    for kills in range(5 * KILLS):  # on a busy machine a life holds few requests
        if kills >= KILLS and log.has_said_much():
            break
        witness = start_witness(tmp_path / "state", [LOG.public])
        killer = Timer(chance.uniform(0.01, 0.4), witness.process.kill)
        killer.start()
        log.submit_until_lost(witness)
        killer.join()
        witness.kill()

    sizes = [size for _, size in log.cosigned]
    assert sizes == sorted(sizes)
    assert log.has_said_much()
    for (old_tree, old), (new_tree, new) in zip(log.cosigned, log.cosigned[1:], strict=False):
        verify_consistency(old, old_tree.root(old), new, new_tree.root(new), new_tree.consistency(old, new))
