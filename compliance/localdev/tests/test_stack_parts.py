"""The small decisions in starting the parts and servers."""

from pathlib import Path

from compliance.localdev.install import fingerprint


def test_changed_requirements_change_the_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x==1")
    (tmp_path / "b.txt").write_text("y==1")
    before = fingerprint(["a.txt", "b.txt"], tmp_path)

    (tmp_path / "b.txt").write_text("y==2")

    assert fingerprint(["a.txt", "b.txt"], tmp_path) != before
    assert fingerprint(["a.txt"], tmp_path) != fingerprint(["b.txt"], tmp_path)
