"""A log that has lost entries goes on under another name."""

import pytest

from auditlog.models import LogKey, SignedHead
from auditlog.sealing import keys, tree
from auditlog.tests.factories import ACTOR, make_entries, seal_and_sign
from auditlog.tests.logs import verify
from auditlog.tlog.checkpoints import Checkpoint
from auditlog.tlog.notes import Note
from auditlog.verifying.findings import LogOutcome
from compliance.core.clock import now
from compliance.core.errors import Conflict, Invalid

NAME = "log.example/second"


def origin_of(head: SignedHead) -> str:
    return Checkpoint.parse(Note.parse(head.note).text).origin


def test_tree_continues_under_the_new_name_and_old_checkpoints_still_verify() -> None:
    make_entries(3)
    before = seal_and_sign()

    made = keys.begin_anew(NAME, actor=ACTOR, now=now())

    after = seal_and_sign()
    assert origin_of(before) != NAME
    assert origin_of(after) == NAME
    assert list(LogKey.objects.signing(now())) == [made]
    assert tree.is_signed(before)
    assert after.size > before.size
    assert verify().outcome is LogOutcome.VERIFIED


def test_name_cannot_be_used_again() -> None:
    seal_and_sign()
    old = keys.origin()

    with pytest.raises(Conflict, match="has or had this name"):
        keys.begin_anew(old, actor=ACTOR, now=now())


@pytest.mark.parametrize("name", ["", "two words", "a+b", "x" * 251])
def test_name_must_be_a_logs_name(name: str) -> None:
    with pytest.raises(Invalid):
        keys.begin_anew(name, actor=ACTOR, now=now())
