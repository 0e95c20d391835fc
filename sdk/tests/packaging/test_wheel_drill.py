"""The wheel, installed with its two dependencies only, on every supported Python that is to be had here."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentid import jose
from tests.packaging.debian_python import unpacked
from tests.served import Service
from tests.verify.test_tokens import CLAIMS, KEY, KID, RULES, signed

SDK = Path(__file__).parents[2]
SCRIPT = Path(__file__).parent / "verify_stored.py"
QUICK_START = Path(__file__).parent / "quick_start.py"
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
    assert sorted(line.split()[1].split(">")[0] for line in required) == ["cryptography", "httpx", "rfc8785"]


@dataclass(frozen=True)
class Installed:
    """The package installed for one Python: the commands of both, and the variables that they need."""

    python: tuple[str, ...]
    agentid: tuple[str, ...]
    needs: dict[str, str]

    @property
    def environ(self) -> dict[str, str]:
        """The environment without the suite's own PYTHONPATH."""
        return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | self.needs


@pytest.fixture(scope="module", params=VERSIONS)
def installed(
    request: pytest.FixtureRequest, uv: str, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    """In an environment that uv makes, else beside a Python of Debian's packages."""
    version, folder = request.param, tmp_path_factory.mktemp("installed")
    made = subprocess.run(
        [uv, "venv", "--python", python_of(version), folder / "venv"], capture_output=True, check=False
    )
    if made.returncode == 0:
        programs = folder / "venv/bin"
        run(uv, "pip", "install", "--python", programs / "python", wheel)
        return Installed((str(programs / "python"),), (str(programs / "agentid"),), {})
    python = unpacked(version, folder)
    if python is None:
        pytest.skip(f"Python {version} is not here and cannot be fetched")
    site = folder / "site"
    options = ("--target", str(site), "--python-version", version, "--only-binary", ":all:")
    run(uv, "pip", "install", "--python", sys.executable, *options, wheel)
    return Installed(python, (*python, str(site / "bin/agentid")), {"PYTHONPATH": str(site)})


def python_of(version: str) -> str:
    """A Python of pyenv, or the version, which uv looks for and may fetch."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    return next((str(each) for each in sorted(root.glob(f"versions/{version}.*/bin/python"))), version)


def test_stored_token_is_verified_offline(installed: Installed, tmp_path: Path) -> None:
    stored = {
        "token": signed(CLAIMS),
        "issuer": RULES.issuer,
        "audience": RULES.audience,
        "at": CLAIMS["iat"],
        "jwks": {"keys": [{**jose.public_jwk(KEY.public_key()), "kid": KID}]},
    }

    said = run(
        *installed.python,
        *("-W", "error", str(SCRIPT)),
        input=json.dumps(stored),
        cwd=tmp_path,
        env=installed.environ,
    )
    answer = json.loads(said)

    assert (answer["principal"], answer["reason"]) == ("checker", "invalid_signature")
    assert {"agentid", "httpx", "cryptography"} <= {*answer["installed"]}
    assert not {"django", "mcp", "pydantic", "requests"} & {*answer["installed"]}


def test_command_runs_and_names_the_extra_it_needs(installed: Installed) -> None:
    helped = run(*installed.agentid, "--help", env=installed.environ)
    missing = subprocess.run(
        [*installed.agentid, "mcp"], capture_output=True, text=True, check=False, env=installed.environ
    )

    assert "verify" in helped
    assert (missing.returncode, "install agentid[mcp]" in missing.stderr) == (2, True)


def test_quick_start_runs(installed: Installed, service: Service, sandbox_key: str, tmp_path: Path) -> None:
    environ = {"AGENTID_BASE_URL": service.address, "AGENTID_API_KEY": sandbox_key}

    said = run(
        *installed.python,
        *(str(QUICK_START), str(SDK / "README.md")),
        cwd=tmp_path,
        env=installed.environ | environ,
    )

    assert said.endswith("\n5 blocks\n")
