"""Policies: which logs are trusted, and which witnesses must have cosigned."""

import itertools

import pytest

from auditlog.tests.log_keys import NumberTree, SigningKey, make_witness_key, signed
from auditlog.tlog.lines import Malformed, SignatureInvalid
from auditlog.tlog.notes import Note
from auditlog.tlog.policy import Policy, Trust

LOG = SigningKey()
NEXT_LOG = SigningKey()
WITNESSES = {
    name: make_witness_key(f"witness.example/{name}") for name in ("X1", "X2", "X3", "Y1", "Y2", "Y3")
}
KEYS = {name: key.public.encode() for name, key in WITNESSES.items()}

# The example of the specification, with keys.
EXAMPLE = f"""
log {LOG.public.encode()} https://log.example/

# Two organisations.
witness X1 {KEYS["X1"]}
witness X2 {KEYS["X2"]}\thttps://x2.example/
 witness  X3 {KEYS["X3"]} \t
group X-witnesses 2 X1 X2 X3

witness Y1 {KEYS["Y1"]}
witness Y2 {KEYS["Y2"]}
witness Y3 {KEYS["Y3"]}
group Y-witnesses any Y1 Y2 Y3

group X-and-Y all X-witnesses Y-witnesses
quorum X-and-Y
"""


def test_example_of_the_specification_is_read() -> None:
    policy = Policy.parse(EXAMPLE)

    assert policy.logs == [LOG.public]
    assert [witness.name for witness in policy.witnesses] == ["X1", "X2", "X3", "Y1", "Y2", "Y3"]
    assert [witness.url for witness in policy.witnesses][:3] == [None, "https://x2.example/", None]
    assert Policy.parse(EXAMPLE.encode()) == policy


@pytest.mark.parametrize(
    ("names", "is_met"),
    [
        ({"X1", "X2", "Y1"}, True),
        ({"X2", "X3", "Y3"}, True),
        ({"X1", "X2", "X3", "Y1", "Y2", "Y3"}, True),
        ({"X1", "X2", "X3"}, False),
        ({"X1", "Y1", "Y2", "Y3"}, False),
        ({"X-witnesses", "Y-witnesses", "X-and-Y"}, False),
        (set(), False),
    ],
)
def test_quorum_counts_groups_of_groups(names: set[str], *, is_met: bool) -> None:
    assert Policy.parse(EXAMPLE).is_met(names) is is_met


def test_quorum_of_one_witness_and_of_none() -> None:
    one = Policy.parse(f"witness all {KEYS['X1']}\nquorum all")

    assert one.is_met({"all"})
    assert not one.is_met({"any"})
    assert Policy.parse("quorum none\n").is_met(set())


def test_names_are_opaque_octets() -> None:
    policy = Policy.parse(f"witness \xff {KEYS['X1']}\nquorum \xff\n".encode("latin-1"))

    assert policy.is_met({"\udcff"})
    assert not policy.is_met({"\xff"})


W = f"witness X1 {KEYS['X1']}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{W}\n", None),
        (f"{W}\nquorum X2\n", 2),
        (f"quorum X1\n{W}\n", 1),
        (f"{W}\nquorum X1\nquorum X1\n", 3),
        (f"{W}\nwitness X1 {KEYS['X2']}\nquorum X1\n", 2),
        (f"{W}\nwitness X2 {KEYS['X1']}\nquorum X1\n", 2),
        (f"witness none {KEYS['X1']}\nquorum none\n", 1),
        (f"witness X1 {LOG.public.encode()}\nquorum X1\n", 1),
        (f"log {KEYS['X1']}\nquorum none\n", 1),
        (f"log {LOG.public.encode()}\nlog {LOG.public.encode()}\nquorum none\n", 2),
        ("log\nquorum none\n", 1),
        ("witness X1 nonsense\nquorum none\n", 1),
        (f"{W}\ngroup g any none\nquorum none\n", 2),
        (f"{W}\ngroup g any g\nquorum none\n", 2),
        (f"{W}\ngroup g any X1 X1\nquorum g\n", 2),
        (f"{W}\ngroup g any X1\ngroup h any X1\nquorum g\n", 3),
        (f"{W}\ngroup X1 any X1\nquorum X1\n", 2),
        (f"{W}\ngroup g 0 X1\nquorum g\n", 2),
        (f"{W}\ngroup g 2 X1\nquorum g\n", 2),
        (f"{W}\ngroup g 01 X1\nquorum g\n", 2),
        (f"{W}\ngroup g most X1\nquorum g\n", 2),
        (f"{W}\ngroup g all\nquorum X1\n", 2),
        (f"{W}\ngroup g\nquorum X1\n", 2),
        (f"{W}\r\nquorum X1\n", 1),
        (f"{W}\nquorum\N{NO-BREAK SPACE}X1\n", 2),
        ("\n" * 999 + "quorum Nobody\n", 1000),
        ("trust everybody\nquorum none\n", 1),
    ],
    ids=itertools.count(),
)
def test_malformed_policy_is_rejected_by_the_number_of_its_line(text: str, line: int | None) -> None:
    with pytest.raises(
        Malformed, match="no quorum line" if line is None else f"^Line {line} of the policy: "
    ):
        Policy.parse(text)


TEXT = NumberTree().checkpoint(11).text()


def test_origin_is_the_name_of_the_key_that_signed() -> None:
    """A log that is trusted cannot sign for another one."""
    other = SigningKey("other.example/log")

    with pytest.raises(SignatureInvalid):
        Trust.of([LOG.public, other.public], None).checkpoint(signed(TEXT, other))


def test_either_key_of_a_log_that_rotates_is_trusted() -> None:
    both = Policy.parse(f"log {LOG.public.encode()}\nlog {NEXT_LOG.public.encode()}\nquorum none\n")

    for key in (LOG, NEXT_LOG):
        assert Trust.of([], both).checkpoint(signed(TEXT, key)) == NumberTree().checkpoint(11)


def test_bad_cosignature_of_a_known_witness_rejects_the_checkpoint() -> None:
    trust = Trust.of([], Policy.parse(EXAMPLE))
    good = signed(TEXT, LOG, *(WITNESSES[name] for name in ("X1", "X3", "Y2")))
    bad = Note(TEXT, (*good.signatures, WITNESSES["Y1"].sign("something else\n")))

    assert trust.is_witnessed(good)
    assert not trust.is_witnessed(signed(TEXT, LOG, WITNESSES["X1"], WITNESSES["Y2"]))
    with pytest.raises(SignatureInvalid):
        trust.is_witnessed(bad)
