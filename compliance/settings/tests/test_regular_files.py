import os
from pathlib import Path

import pytest

from compliance.settings.declaring import read_text


def test_link_to_a_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("ö\n", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "secret")

    assert read_text(tmp_path / "link") == "ö\n"


def test_what_could_block_its_reader_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")

    for path in (tmp_path / "pipe", tmp_path / "link", tmp_path, "/dev/zero"):
        with pytest.raises(OSError, match="Not a regular file"):
            read_text(path)
