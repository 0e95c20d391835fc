"""What a witness cosigns and what it refuses, one test for each answer of the protocol, and its files."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from auditlog.tests.log_keys import ORIGIN, NumberTree, SigningKey, signed
from auditlog.tests.witness_process import FORK, LOG, NAME, NEXT_LOG, OTHER_LOG, TREE, make_request
from auditlog.tlog.checkpoints import SIZE_CONTENT_TYPE, AddCheckpoint, Checkpoint
from auditlog.tlog.lines import Malformed
from auditlog.tlog.merkle import EMPTY_ROOT
from auditlog.tlog.notes import Note, VerifierKey, parse_signatures, timestamp_of
from auditlog.witness.cosigning import CheckpointRefused, Witness
from auditlog.witness.server import WitnessServer
from auditlog.witness.state import StateFolder, WitnessUnusable, key_of

MOMENT = 1_800_000_000


def add(witness: Witness, request: AddCheckpoint | bytes) -> str:
    body = request if isinstance(request, bytes) else request.encode().encode()
    return witness.add_checkpoint(body, now=MOMENT)


def refusal(witness: Witness, request: AddCheckpoint | bytes) -> CheckpointRefused:
    with pytest.raises(CheckpointRefused) as refused:
        add(witness, request)
    return refused.value


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[StateFolder]:
    with StateFolder(tmp_path / "state") as found:
        yield found


@pytest.fixture
def witness(folder: StateFolder) -> Witness:
    return Witness(folder, key_of(folder, NAME), [LOG.public, NEXT_LOG.public, OTHER_LOG.public])


def vkey_of(folder: StateFolder) -> VerifierKey:
    return key_of(folder, None).public


def test_growing_tree_is_cosigned(witness: Witness, folder: StateFolder) -> None:
    for old, new in ((0, 0), (0, 3), (3, 3), (3, 7), (7, 8), (8, 21)):
        request = make_request(old, new)

        (cosignature,) = parse_signatures(add(witness, request))

        vkey_of(folder).verify(request.note.text, cosignature)
        assert timestamp_of(cosignature.value) == MOMENT


def test_logs_do_not_depend_on_one_another(witness: Witness) -> None:
    add(witness, make_request(0, 5))

    assert add(witness, make_request(0, 3, key=OTHER_LOG))


def test_key_that_a_log_rotated_to_goes_on_with_the_same_tree(witness: Witness) -> None:
    add(witness, make_request(0, 5))

    assert add(witness, make_request(5, 6, key=NEXT_LOG))
    assert refusal(witness, make_request(5, 7, key=NEXT_LOG)).text == "6\n"


def test_unknown_log_is_404(witness: Witness) -> None:
    assert refusal(witness, make_request(0, 1, key=SigningKey("unknown.example/log"))).status == 404


@pytest.mark.parametrize(
    "signatures",
    [
        [SigningKey().sign(TREE.checkpoint(1).text())],
        [LOG.sign("something else\n")],
        [LOG.sign(TREE.checkpoint(1).text()), NEXT_LOG.sign("something else\n")],
        [OTHER_LOG.sign(TREE.checkpoint(1).text())],
    ],
)
def test_checkpoint_that_its_log_did_not_sign_is_403(witness: Witness, signatures: list[Any]) -> None:
    note = Note(TREE.checkpoint(1).text(), tuple(signatures))

    assert refusal(witness, AddCheckpoint(0, [], note)).status == 403


SOUND = make_request(3, 7).encode()


@pytest.mark.parametrize(
    ("part", "instead"),
    [
        ("old 3", "old 03"),
        ("old 3", "old -3"),
        ("old 3", "old"),
        ("old 3", "new 3"),
        ("old 3\n", ""),
        ("\n\n", "\n"),
        ("\n\n", "\nAAAA\n\n"),
        ("\n\n", "\n" + "A" * 43 + "=\n" * 62 + "\n"),
        ("\n7\n", "\n07\n"),
        ("\n7\n", "\n7\n7\n"),
        ("\n— ", "\n"),
        (SOUND, ""),
    ],
)
def test_malformed_request_is_400(witness: Witness, part: str, instead: str) -> None:
    assert part in SOUND

    assert refusal(witness, SOUND.replace(part, instead, 1).encode()).status == 400


def test_more_than_63_hashes_are_400(witness: Witness) -> None:
    request = make_request(0, 7)

    assert refusal(witness, replace(request, proof=[EMPTY_ROOT] * 63)).status == 422
    assert refusal(witness, replace(request, proof=[EMPTY_ROOT] * 64)).status == 400


def test_old_size_above_the_new_one_is_400(witness: Witness) -> None:
    add(witness, make_request(0, 7))

    assert refusal(witness, make_request(7, 3)).status == 400


def test_other_old_size_than_the_witness_has_is_409_with_its_size(witness: Witness) -> None:
    first = refusal(witness, make_request(3, 7))
    add(witness, make_request(0, 5))
    later = [refusal(witness, make_request(old, 7)) for old in (0, 4, 6, 7)]

    assert (first.status, first.text, first.content_type) == (409, "0\n", SIZE_CONTENT_TYPE)
    assert {(each.status, each.text, each.content_type) for each in later} == {
        (409, "5\n", SIZE_CONTENT_TYPE)
    }


@pytest.mark.parametrize("proof", [[], [EMPTY_ROOT], [*TREE.consistency(5, 9), EMPTY_ROOT]])
def test_tree_without_proof_that_it_follows_is_422(witness: Witness, proof: list[bytes]) -> None:
    add(witness, make_request(0, 5))

    assert refusal(witness, replace(make_request(5, 9), proof=proof)).status == 422


def test_forked_tree_is_422(witness: Witness) -> None:
    add(witness, make_request(0, 5))

    assert refusal(witness, make_request(5, 5, tree=FORK)).status == 422
    assert refusal(witness, make_request(5, 9, tree=FORK)).status == 422
    assert add(witness, make_request(5, 9))


def test_proof_from_nothing_and_the_root_of_nothing_are_422(witness: Witness) -> None:
    empty_with_root = signed(Checkpoint(ORIGIN, 0, TREE.root(1)).text(), LOG)

    assert refusal(witness, replace(make_request(0, 5), proof=[EMPTY_ROOT])).status == 422
    assert refusal(witness, AddCheckpoint(0, [], empty_with_root)).status == 422


def test_state_outlives_the_process(tmp_path: Path) -> None:
    with StateFolder(tmp_path / "state") as folder:
        add(Witness(folder, key_of(folder, NAME), [LOG.public]), make_request(0, 5))

    with StateFolder(tmp_path / "state") as folder:
        restarted = Witness(folder, key_of(folder, NAME), [LOG.public])

        assert refusal(restarted, make_request(0, 9)).text == "5\n"
        assert refusal(restarted, make_request(5, 9, tree=FORK)).status == 422
        assert add(restarted, make_request(5, 9))


def test_state_of_another_log_or_damaged_is_not_begun_anew(
    witness: Witness, folder: StateFolder, tmp_path: Path
) -> None:
    add(witness, make_request(0, 5))
    (file,) = (tmp_path / "state").glob("*.checkpoint")
    sound = file.read_text()

    for content in (
        "",
        sound[:-20],
        sound.replace("\n5\n", "\n4\n"),
        sound.replace("log.example", "log.test"),
    ):
        file.write_text(content)
        with pytest.raises(WitnessUnusable, match="damaged"):
            Witness(folder, key_of(folder, NAME), [LOG.public])
    file.write_text(sound)
    file.rename(file.with_name(f"{'0' * 64}.checkpoint"))
    with pytest.raises(WitnessUnusable, match="another log"):
        Witness(folder, key_of(folder, NAME), [LOG.public])


def test_write_that_a_crash_cut_short_leaves_the_state_before(
    witness: Witness, folder: StateFolder, tmp_path: Path
) -> None:
    add(witness, make_request(0, 5))
    (file,) = (tmp_path / "state").glob("*.checkpoint")
    file.with_name(f"{file.name}.new").write_text("log.exam")

    restarted = Witness(folder, key_of(folder, NAME), [LOG.public])

    assert add(restarted, make_request(5, 9))


def test_folder_serves_one_process_at_a_time(folder: StateFolder, tmp_path: Path) -> None:
    with pytest.raises(WitnessUnusable, match="Another process"):
        StateFolder(tmp_path / "state")


def test_key_is_kept_private_and_under_one_name(folder: StateFolder, tmp_path: Path) -> None:
    made = key_of(folder, NAME)
    file = tmp_path / "state/key"

    assert file.stat().st_mode & 0o777 == 0o600
    assert key_of(folder, None).public == key_of(folder, NAME).public == made.public
    with pytest.raises(WitnessUnusable, match="is named"):
        key_of(folder, "witness.example/w2")


@pytest.mark.parametrize("damage", [lambda text: "", lambda text: text[:90], lambda text: text[5:]])
def test_damaged_key_is_not_replaced(folder: StateFolder, tmp_path: Path, damage: Any) -> None:
    key_of(folder, NAME)
    file = tmp_path / "state/key"
    file.write_text(damage(file.read_text()))

    with pytest.raises(WitnessUnusable, match="damaged"):
        key_of(folder, NAME)


def test_key_needs_a_name_that_notes_allow(folder: StateFolder) -> None:
    with pytest.raises(WitnessUnusable, match="--name"):
        key_of(folder, None)
    with pytest.raises(Malformed):
        key_of(folder, "two words")


def test_of_forks_that_arrive_at_once_one_is_cosigned(witness: Witness) -> None:
    add(witness, make_request(0, 3))
    trees = [NumberTree(branch=branch, fork=3) for branch in range(1, 17)]
    requests = [make_request(3, 4 + branch, tree=tree) for branch, tree in enumerate(trees)]

    def outcome(request: AddCheckpoint) -> int:
        try:
            add(witness, request)
        except CheckpointRefused as refused:
            return refused.status
        return 200

    with ThreadPoolExecutor(16) as pool:
        found = sorted(pool.map(outcome, requests))

    assert found == [200] + [409] * 15


@pytest.mark.parametrize(
    "sent", [b"", b"POST /add-", b"POST /add-checkpoint HTTP/1.1\r\nContent-Length: 9\r\n\r\nold"]
)
def test_slow_client_is_cut_off(witness: Witness, sent: bytes) -> None:
    with WitnessServer(("127.0.0.1", 0), witness, request_seconds=0.2) as server:
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        address = ("127.0.0.1", server.server_address[1])
        # On a busy machine a client may be cut off before it has sent.
        with socket.create_connection(address, timeout=60) as client, suppress(ConnectionError):
            client.sendall(sent)

            assert client.recv(1) == b""
        server.shutdown()
