"""Files and locks that outlive a run."""

import stat
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from compliance.localdev.console import StepFailed
from compliance.localdev.state import load_secrets, locked, read_json, write_json


def test_an_absent_file_reads_as_empty(tmp_path: Path) -> None:
    assert read_json(tmp_path / "absent.json") == {}


@pytest.mark.parametrize("content", ["{", "[]", '"text"'])
def test_a_damaged_file_is_reported_with_its_path(tmp_path: Path, content: str) -> None:
    file = tmp_path / "state.json"
    file.write_text(content)

    with pytest.raises(StepFailed) as caught:
        read_json(file)

    assert str(file) in caught.value.message + caught.value.hint


def test_a_written_file_is_private_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "state.json"

    write_json(file, {"a": 1})
    write_json(file, {"a": 2})

    assert read_json(file) == {"a": 2}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_secrets_are_made_once_and_completed_later(tmp_path: Path) -> None:
    file = tmp_path / "secrets.json"
    write_json(file, {"secret_key": "from an older version"})

    first = load_secrets(file)

    assert first["secret_key"] == "from an older version"
    assert load_secrets(file) == first
    Fernet(first["encryption_key"])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_an_exclusive_lock_keeps_others_out(tmp_path: Path) -> None:
    file = tmp_path / "lock"

    with locked(file), pytest.raises(BlockingIOError), locked(file, wait=False):
        pass

    with locked(file, wait=False):
        pass


def test_shared_locks_go_together_and_exclude_an_exclusive_one(tmp_path: Path) -> None:
    file = tmp_path / "lock"

    with (
        locked(file, shared=True),
        locked(file, shared=True, wait=False),
        pytest.raises(BlockingIOError),
        locked(file, wait=False),
    ):
        pass
