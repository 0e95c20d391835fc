"""Handing on a token that is bound to a key, or whose root is verified."""

import pytest

from agents.models import Agent
from delegation.errors import ParentExceeded, ParentKeyNotProven
from delegation.jose.tokens import RootAssurance, SubjectIdentifier
from delegation.tests.factories import CHAIN, JKT, VERIFIED, as_chain, make_token

OTHER_KEY = "n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg"
LONGER = [*CHAIN, {"sub": "quote-service", "type": "service"}]


@pytest.mark.parametrize("proven", [None, OTHER_KEY])
@pytest.mark.parametrize("bound_to", [None, JKT])
def test_a_bound_token_is_not_handed_on_without_its_key(
    agent: Agent, proven: str | None, bound_to: str | None
) -> None:
    parent = make_token(agent, bound_to=JKT).token

    with pytest.raises(ParentKeyNotProven):
        make_token(agent, chain=as_chain(LONGER), parent_token=parent, proven_key=proven, bound_to=bound_to)


@pytest.mark.parametrize(("bound_to", "expected"), [(None, JKT), (OTHER_KEY, OTHER_KEY)])
def test_the_child_of_a_bound_token_is_bound(agent: Agent, bound_to: str | None, expected: str) -> None:
    parent = make_token(agent, bound_to=JKT).token

    child = make_token(
        agent, chain=as_chain(LONGER), parent_token=parent, proven_key=JKT, bound_to=bound_to
    ).delegation

    assert child.bound_to == expected


def test_the_root_stays_verified(agent: Agent) -> None:
    parent = make_token(agent, subject=VERIFIED).token

    child = make_token(agent, chain=as_chain(LONGER), parent_token=parent).delegation

    assert (child.root_assurance, child.subject_identifier) == (RootAssurance.VERIFIED, VERIFIED)


def test_an_asserted_root_does_not_become_verified(agent: Agent) -> None:
    parent = make_token(agent).token

    child = make_token(agent, chain=as_chain(LONGER), parent_token=parent).delegation

    assert child.root_assurance is RootAssurance.ASSERTED


@pytest.mark.parametrize("parents", [None, SubjectIdentifier("https://other.example", VERIFIED.subject)])
def test_another_root_than_the_parents_is_refused(agent: Agent, parents: SubjectIdentifier | None) -> None:
    parent = make_token(agent, subject=parents).token

    with pytest.raises(ParentExceeded):
        make_token(agent, chain=as_chain(LONGER), parent_token=parent, subject=VERIFIED)
