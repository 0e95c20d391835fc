"""Signed notes, cosignatures and checkpoints: real ones verify, malformed and changed ones do not."""

from dataclasses import replace
from pathlib import Path

import pytest

from auditlog.tests.log_keys import NumberTree, SigningKey, make_witness_key, signed
from auditlog.tlog import notes
from auditlog.tlog.checkpoints import Checkpoint
from auditlog.tlog.lines import Malformed, SignatureInvalid
from auditlog.tlog.notes import COSIGNATURE, MAX_SIGNATURES, Note, Signature, VerifierKey, verified

# The example of C2SP signed-note.
EXAMPLE_KEY = VerifierKey.parse("example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k")
EXAMPLE = (
    "This is an example message.\n"
    "\n"
    "— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYj"
    "OBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
)
# A log of certificates that witnesses in use have cosigned; its first signature is of another type (0x05).
REAL = Path(__file__).with_name("cosigned_checkpoint.txt").read_text()
REAL_LOG = VerifierKey.parse(
    "arche2025h1.staging.ct.transparency.dev+ba2f06c0+AU0vHmlGCS/PdN8b2OaGmKprLI8HKM+dJ472xgFYh15f"
)
REAL_WITNESSES = [
    VerifierKey.parse(vkey)
    for vkey in (
        "remora.n621.de+da77ade7+BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2",
        "witness.stagemole.eu+67f7aea0+BEqSG3yu9YrmcM3BHvQYTxwFj3uSWakQepafafpUqklv",
        "transparency.dev/DEV:witness-little-garden+d8042a87+BCtusOxINQNUTN5Oj8HObRkh2yHf/MwYaGX4CPdiVEPM",
        "witness1.smartit.nu/witness1+a48c820f+BPSFWg9G6KPiO7QPryYO5Xq4oYJJ+kAvLKLSimDhoxMO",
    )
]
TEXT = "a\n\nb\n"


def test_example_of_the_specification_verifies() -> None:
    note = Note.parse(EXAMPLE)

    assert verified(note, [EXAMPLE_KEY]) == list(note.signatures)
    assert note.text == "This is an example message.\n"
    assert EXAMPLE_KEY.encode().endswith("+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k")


def test_checkpoint_in_use_verifies_by_its_log_and_by_each_witness() -> None:
    note = Note.parse(REAL.encode())

    found = verified(note, [*REAL_WITNESSES, REAL_LOG])

    assert {each.name for each in found} == {each.name for each in (*REAL_WITNESSES, REAL_LOG)}
    assert notes.timestamp_of(found[0].value) == 0x6A122120
    assert Checkpoint.parse(note.text).size == 1432088532
    assert note.encode() == REAL


def test_changed_text_is_rejected_for_every_known_key() -> None:
    note = Note.parse(REAL)
    changed = replace(note, text=note.text.replace("1432088532", "1432088531"))

    for key in (*REAL_WITNESSES, REAL_LOG):
        with pytest.raises(SignatureInvalid):
            verified(changed, [key])


def test_changed_time_of_a_cosignature_is_rejected() -> None:
    note, key = Note.parse(REAL), REAL_WITNESSES[0]
    genuine = next(each for each in note.signatures if each.name == key.name)
    later = replace(genuine, value=genuine.value[:7] + b"\x21" + genuine.value[8:])

    key.verify(note.text, genuine)
    with pytest.raises(SignatureInvalid):
        key.verify(note.text, later)


def test_signatures_of_unknown_keys_are_ignored() -> None:
    known, same_name = SigningKey("one"), SigningKey("one")
    note = signed(TEXT, same_name, known, SigningKey("two"))

    assert verified(note, [known.public, SigningKey("three").public]) == [known.sign(TEXT)]


def test_note_without_signature_of_a_known_key_is_rejected() -> None:
    note = signed(TEXT, SigningKey("one"))

    for keys in ([], [SigningKey("one").public], [SigningKey("two").public]):
        with pytest.raises(SignatureInvalid, match="No signature by a known key"):
            verified(note, keys)


def test_one_bad_signature_of_a_known_key_rejects_the_note() -> None:
    good, other = SigningKey("one"), SigningKey("two")
    bad = other.public.signature(other.private.sign(b"something else"))
    note = Note(TEXT, (good.sign(TEXT), bad))

    assert verified(note, [good.public]) == [good.sign(TEXT)]
    with pytest.raises(SignatureInvalid):
        verified(note, [good.public, other.public])


def test_signature_of_a_log_does_not_count_as_a_cosignature() -> None:
    log = SigningKey("one")
    witness = SigningKey("one", COSIGNATURE, log.private)
    text = NumberTree().checkpoint(3).text()

    assert log.public.key_id != witness.public.key_id
    with pytest.raises(SignatureInvalid):
        witness.public.verify(text, witness.public.signature(log.private.sign(text.encode())))
    with pytest.raises(SignatureInvalid):
        witness.public.verify(text, log.sign(text))


def test_cosignature_covers_the_extension_lines() -> None:
    key = make_witness_key()
    text = replace(NumberTree().checkpoint(3), extensions=("one", "two")).text()
    signature = key.sign(text, at=1_800_000_000)

    key.public.verify(text, signature)

    assert notes.timestamp_of(signature.value) == 1_800_000_000
    with pytest.raises(SignatureInvalid):
        key.public.verify(text.replace("two", "too"), signature)


@pytest.mark.parametrize("value", [b"", b"\x00" * 71, b"\x00" * 73, b"\x80" + b"\x00" * 71])
def test_value_of_another_shape_is_no_cosignature(value: bytes) -> None:
    with pytest.raises(SignatureInvalid):
        notes.timestamp_of(value)


LINE = Signature("k", b"\x00\x01\x02\x03", b"v").line()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\n",
        "a\n\n",
        LINE,
        f"a\n{LINE}",
        f"a\n\n{LINE}\n",
        f"a\n\n{LINE}".removesuffix("\n"),
        f"a\r\n\n{LINE}",
        f"a\tb\n\n{LINE}",
        f"a\x00\n\n{LINE}",
        f"a\n\n{LINE.replace(' ', '  ')}",
        f"a\n\n{LINE.replace('—', '-')}",
        f"a\n\n{LINE.replace('k', '')}",
        f"a\n\n{LINE.replace('k', 'k+k')}",
        "a\n\n" + LINE.replace("k", "k\N{NO-BREAK SPACE}k"),
        f"a\n\n{LINE.replace('AAECA3Y=', 'AAECA3Y')}",
        f"a\n\n{LINE.replace('AAECA3Y=', 'AAECA3Z=')}",
        f"a\n\n{LINE.replace('AAECA3Y=', 'AAECAw==')}",
        f"a\n\n{LINE.replace('AAECA3Y=', 'AAEC A3Y=')}",
        f"a\n\n{LINE * (MAX_SIGNATURES + 1)}",
        "a" * 1024 * 1024 + f"\n\n{LINE}",
        "a\udc80\n\n" + LINE,
        b"a\xff\n\n" + LINE.encode(),
    ],
)
def test_malformed_note_is_rejected(text: str | bytes) -> None:
    with pytest.raises(Malformed):
        Note.parse(text)


def test_last_empty_line_separates_the_signatures() -> None:
    note = Note.parse(f"a\n\nb\n\n\n{LINE * MAX_SIGNATURES}")

    assert note.text == "a\n\nb\n\n"
    assert len(note.signatures) == MAX_SIGNATURES


@pytest.mark.parametrize(
    "vkey",
    [
        "",
        "example.com/foo",
        "example.com/foo+530d903a",
        "example.com/foo+530d903a+",
        "example.com/foo+530d903b+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        "example.com/foo+530D903A+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        "example.com/bar+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        "+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        "example.com/foo+530d903a+AukyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3Q==",
    ],
)
def test_malformed_verifier_key_is_rejected(vkey: str) -> None:
    with pytest.raises(Malformed):
        VerifierKey.parse(vkey)


def test_checkpoint_is_read_as_it_is_written() -> None:
    checkpoint = replace(NumberTree().checkpoint(20), extensions=("one", "two words"))

    assert Checkpoint.parse(checkpoint.text()) == checkpoint


ROOT = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="


@pytest.mark.parametrize(
    "text",
    [
        "",
        "o\n1\n",
        f"o\n1\n{ROOT}",
        f"\n1\n{ROOT}\n",
        f"o\n01\n{ROOT}\n",
        f"o\n+1\n{ROOT}\n",
        f"o\n-1\n{ROOT}\n",
        f"o\n1_0\n{ROOT}\n",
        f"o\n\n{ROOT}\n",
        f"o\n\N{ARABIC-INDIC DIGIT ONE}\n{ROOT}\n",
        f"o\n9223372036854775808\n{ROOT}\n",
        f"o\n99999999999999999999\n{ROOT}\n",
        "o\n1\nAAAA\n",
        f"o\n1\n{ROOT[:-1]}\n",
        f"o\n1\n{ROOT[:-2]}J=\n",
        f"o\n1\n{ROOT}\n\n",
        f"o\n1\n{ROOT}\n\nextension\n",
    ],
)
def test_malformed_checkpoint_is_rejected(text: str) -> None:
    with pytest.raises(Malformed):
        Checkpoint.parse(text)


def test_checkpoint_that_cannot_be_written_is_not_made() -> None:
    sound = NumberTree().checkpoint(1)

    for change in ({"origin": ""}, {"origin": "a\nb"}, {"size": -1}, {"root": b""}, {"extensions": ("",)}):
        with pytest.raises(Malformed):
            replace(sound, **change)
