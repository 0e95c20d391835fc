"""Policies and proof files: what is trusted, and what convinces offline."""

from dataclasses import replace
from typing import Any

import pytest

from auditlog.tests.log_keys import ORIGIN, NumberTree, SigningKey, make_witness_key, signed
from auditlog.tlog.errors import Malformed, ProofInvalid, SignatureInvalid, TlogError
from auditlog.tlog.policy import Policy
from auditlog.tlog.proof_file import ProofFile

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

    assert [(log.key, log.url) for log in policy.logs] == [(LOG.public, "https://log.example/")]
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
)
def test_malformed_policy_is_rejected_by_the_number_of_its_line(text: str, line: int | None) -> None:
    with pytest.raises(
        Malformed, match="no quorum line" if line is None else f"^Line {line} of the policy: "
    ):
        Policy.parse(text)


def make_proof(*cosigners: str, log: SigningKey = LOG, **changes: Any) -> ProofFile:
    tree = NumberTree()
    note = signed(tree.checkpoint(11).text(), log, *(WITNESSES[name] for name in cosigners))
    return replace(ProofFile(6, tree.inclusion(6, 11), note), **changes)


LEAF = NumberTree().leaf(6)


def test_proof_convinces_who_trusts_the_log_and_the_witnesses() -> None:
    proof = make_proof("X1", "X3", "Y2")

    checkpoint = ProofFile.parse(proof.encode()).verify(LEAF, Policy.parse(EXAMPLE))

    assert checkpoint == NumberTree().checkpoint(11)


@pytest.mark.parametrize(
    "proof",
    [
        make_proof("X1", "Y2"),
        make_proof("X1", "X3", "Y2", log=SigningKey()),
        make_proof("X1", "X3", "Y2", log=SigningKey("another.example/log")),
        make_proof("X1", "X3", "Y2", index=5),
        make_proof("X1", "X3", "Y2", path=NumberTree().inclusion(6, 11)[:-1]),
        make_proof("X1", "X3", "Y2", path=NumberTree().inclusion(5, 11)),
    ],
)
def test_proof_that_lacks_something_does_not_convince(proof: ProofFile) -> None:
    with pytest.raises(TlogError):
        proof.verify(LEAF, Policy.parse(EXAMPLE))


def test_proof_does_not_convince_of_another_leaf() -> None:
    with pytest.raises(ProofInvalid):
        make_proof("X1", "X3", "Y2").verify(NumberTree().leaf(5), Policy.parse(EXAMPLE))


def test_origin_is_the_name_of_the_key_that_signed() -> None:
    """A log that a policy trusts cannot sign for another one."""
    other = SigningKey("other.example/log")
    text = f"log {LOG.public.encode()}\nlog {other.public.encode()}\nquorum none\n"
    note = signed(NumberTree().checkpoint(11).text(), other)

    with pytest.raises(SignatureInvalid):
        Policy.parse(text).verify(note)


def test_either_key_of_a_log_that_rotates_is_trusted() -> None:
    both = Policy.parse(f"log {LOG.public.encode()}\nlog {NEXT_LOG.public.encode()}\nquorum none\n")

    for key in (LOG, NEXT_LOG):
        assert make_proof(log=key).verify(LEAF, both).origin == ORIGIN


def test_bad_cosignature_of_a_known_witness_rejects_the_checkpoint() -> None:
    proof = make_proof("X1", "X3", "Y2")
    bad = WITNESSES["Y1"].sign("something else\n")
    note = replace(proof.checkpoint_note, signatures=(*proof.checkpoint_note.signatures, bad))

    with pytest.raises(SignatureInvalid):
        Policy.parse(EXAMPLE).verify(note)


@pytest.mark.parametrize("extra", [None, b"", b"agent\x00\xff"])
def test_proof_file_is_read_as_it_is_written(extra: bytes | None) -> None:
    proof = make_proof("X1", extra=extra)

    assert ProofFile.parse(proof.encode()) == proof
    assert ProofFile.parse(proof.encode().encode()) == proof


def test_proof_of_the_only_leaf_has_no_path() -> None:
    note = signed(NumberTree().checkpoint(1).text(), LOG)
    text = ProofFile(0, [], note).encode()

    assert text.startswith("c2sp.org/tlog-proof@v1\nindex 0\n\nlog.example/live\n1\n")
    ProofFile.parse(text).verify(
        NumberTree().leaf(0), Policy.parse(f"log {LOG.public.encode()}\nquorum none")
    )


SOUND = make_proof().encode()


@pytest.mark.parametrize(
    ("part", "instead"),
    [
        ("@v1", "@v2"),
        ("index 6", "index 06"),
        ("index 6", "index -1"),
        ("index 6", "index"),
        ("index 6", "Index 6"),
        ("index 6", "extra ???\nindex 6"),
        ("index 6", "extra YQ==\nextra YQ==\nindex 6"),
        ("index 6", "index 6\nextra YQ=="),
        ("index 6\n", ""),
        ("index 6\n", "index 6\n" + "A" * 43 + "=\n" * 64),
        ("index 6\n", "index 6\nAAAA\n"),
        ("\n\nlog.example", "\nlog.example"),
        ("\n—", "\n-"),
    ],
)
def test_malformed_proof_file_is_rejected(part: str, instead: str) -> None:
    assert part in SOUND

    with pytest.raises(Malformed):
        ProofFile.parse(SOUND.replace(part, instead, 1))


def test_proof_file_has_at_most_63_hashes() -> None:
    line = "A" * 43 + "=\n"

    assert len(ProofFile.parse(SOUND.replace("index 6\n", f"index 6\n{line * 59}")).path) == 63
    with pytest.raises(Malformed):
        ProofFile.parse(SOUND.replace("index 6\n", f"index 6\n{line * 60}"))
