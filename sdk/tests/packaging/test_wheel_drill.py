"""The wheel, installed with its two dependencies only, on every supported Python that is here."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from agentid.jose import jwk
from tests.verify.test_tokens import CLAIMS, KEY, KID, RULES, signed

SDK = Path(__file__).parents[2]
SCRIPT = Path(__file__).parent / "verify_stored.py"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
UV = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))

pytestmark = pytest.mark.drill


def run(*command: str | Path, **more: Any) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


@pytest.fixture(scope="module")
def uv() -> str:
    if UV is None:
        pytest.fail("no uv: it makes the environments", pytrace=False)
    return UV


@pytest.fixture(scope="module")
def wheel(uv: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(uv, "build", "--wheel", "--out-dir", folder, SDK)
    (found,) = folder.glob("agentid-*.whl")
    return found


def test_wheel_is_typed_and_holds_the_package_only(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = next(archive.read(name).decode() for name in names if name.endswith("/METADATA"))

    assert "agentid/py.typed" in names
    assert {name.split("/")[0] for name in names if "dist-info" not in name} == {"agentid"}
    required = [
        line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra" not in line
    ]
    assert sorted(line.split()[1].split(">")[0] for line in required) == ["cryptography", "httpx"]


def python_of(version: str) -> str:
    """A Python of pyenv, or the version, which uv looks for and may fetch."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    return next((str(each) for each in sorted(root.glob(f"versions/{version}.*/bin/python"))), version)


@pytest.mark.parametrize("version", VERSIONS)
def test_stored_token_is_verified_offline(version: str, uv: str, wheel: Path, tmp_path: Path) -> None:
    made = subprocess.run(
        [uv, "venv", "--python", python_of(version), tmp_path / "venv"],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"Python {version} is not here and cannot be fetched")
    python = tmp_path / "venv" / "bin" / "python"
    run(uv, "pip", "install", "--python", python, wheel)
    stored = {
        "token": signed(CLAIMS),
        "issuer": RULES.issuer,
        "audience": RULES.audience,
        "at": CLAIMS["iat"],
        "jwks": {"keys": [{**jwk.public_jwk(KEY.public_key()), "kid": KID}]},
    }

    answer = json.loads(run(python, "-W", "error", SCRIPT, input=json.dumps(stored), cwd=tmp_path))

    assert (answer["principal"], answer["reason"]) == ("checker", "invalid_signature")
    assert {"agentid", "httpx", "cryptography"} <= {*answer["installed"]}
    assert not {"django", "mcp", "pydantic", "requests"} & {*answer["installed"]}
    helped = run(tmp_path / "venv" / "bin" / "agentid", "--help", cwd=tmp_path)
    assert "verify" in helped
    missing = subprocess.run(
        [tmp_path / "venv" / "bin" / "agentid", "mcp"], capture_output=True, text=True, check=False
    )
    assert (missing.returncode, "install agentid[mcp]" in missing.stderr) == (2, True)
