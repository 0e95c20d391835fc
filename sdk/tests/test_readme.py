"""The quick start of the README runs as it stands."""

import re
import subprocess
from pathlib import Path

import pytest

import agentid
from agentid import Client
from tests.served import Service

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)


def test_every_block_runs_one_after_the_other(
    service: Service, sandbox_key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTID_BASE_URL", service.address)
    monkeypatch.setenv("AGENTID_API_KEY", sandbox_key)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}

    for block in BLOCKS:
        exec(compile(block, str(README), "exec"), names)  # noqa: S102

    assert len(BLOCKS) == 5
    for left in tmp_path.iterdir():
        # What a reader who stands in the repository would commit by mistake.
        ignored = subprocess.run(["git", "check-ignore", "-q", left.name], cwd=README.parent, check=False)
        assert ignored.returncode == 0, left.name
    client = names["client"]
    assert isinstance(client, Client)
    client.close()


def test_errors_in_the_table_exist() -> None:
    named = re.findall(
        r"`([A-Z]\w+)`", README.read_text("utf-8").split("| Raised")[1].split("GET requests")[0]
    )

    assert {each for each in named if not hasattr(agentid, each)} == set()
