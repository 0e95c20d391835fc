"""Templates of test databases are made anew whenever what migrations may depend on has changed."""

from pathlib import Path

from compliance.tests.databases import digest_of_code


def test_digest_is_of_all_code_but_tests(tmp_path: Path) -> None:
    # Where the checkout lies does not count.
    root = tmp_path / "tests/service"
    (root / "app/tests").mkdir(parents=True)
    files = [root / "requirements.txt", root / "app/functions.py", root / "app/tests/test_it.py"]

    digests = [digest_of_code(root) for file in files if file.write_text(file.name)]

    assert digests[0] != digests[1]
    assert digests[1] == digests[2]
