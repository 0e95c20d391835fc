"""What a release checks, and what it holds."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from compliance.localdev.console import StepFailed
from compliance.tests.nodes import node_environment
from deploy.release import versions
from deploy.release.__main__ import DIGESTS, digests, pack, release
from deploy.tests.programs import output_of

ROOT = Path(settings.BASE_DIR)
ROOMS = {
    *("agents", "auditlog", "certificates", "compliance", "delegation", "events", "gateway", "incidents"),
    *("ops", "people", "reports", "signals", "tenancy", "webhooks"),
}


def git(root: Path, *arguments: str) -> None:
    named = ("-c", "user.name=release", "-c", "user.email=release@example.org")
    output_of("git", *named, *arguments, cwd=root)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with what bears a version, at version 1.2.0."""
    root = tmp_path / "project"
    for name in ("pyproject.toml", "sdk/pyproject.toml"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text('[project]\nname = "x"\nversion = "1.2.0"\n')
    (root / "sdk-typescript").mkdir()
    (root / "sdk-typescript/package.json").write_text('{"version": "1.2.0"}')
    (root / versions.CHART).parent.mkdir(parents=True)
    (root / versions.CHART).write_text('version: 1.2.0\nappVersion: "1.2.0"\n')
    (root / "CHANGELOG.md").write_text(
        "# Changelog\n\n## 1.2.0 \N{EN DASH} 2026-11-25\n\n- New.\n\n## 1.1.0\n\n- Old.\n"
    )
    git(root, "init", "--quiet")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "All")
    return root


def test_this_projects_version_is_the_same_everywhere() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", versions.version_of(ROOT))


@pytest.mark.parametrize(
    "name", ["pyproject.toml", "sdk/pyproject.toml", "sdk-typescript/package.json", str(versions.CHART)]
)
def test_other_version_anywhere_is_refused(project: Path, name: str) -> None:
    path = project / name
    path.write_text(path.read_text().replace("1.2.0", "1.3.0", 1))

    with pytest.raises(StepFailed, match=r"1\.3\.0"):
        versions.version_of(project)


def test_changes_are_those_of_the_version(project: Path) -> None:
    assert versions.changes_of(project, "1.2.0") == "- New.\n"


@pytest.mark.parametrize("version", ["1.3.0", "1.2", "1.2.00", "1.1.0"])
def test_version_whose_changes_are_not_the_newest_is_refused(project: Path, version: str) -> None:
    with pytest.raises(StepFailed, match=r"begins with 1\.2\.0"):
        versions.changes_of(project, version)


def test_changes_that_no_version_heads_are_refused(project: Path) -> None:
    path = project / "CHANGELOG.md"
    path.write_text(path.read_text().replace("## 1.2.0", "## Unreleased\n\n- Newer.\n\n## 1.2.0"))

    with pytest.raises(StepFailed, match="begins with Unreleased"):
        versions.changes_of(project, "1.2.0")


def test_commit_bears_the_tag_and_nothing_else(project: Path) -> None:
    with pytest.raises(StepFailed, match=r"tag v1\.2\.0"):
        versions.check_commit(project, "1.2.0")
    git(project, "tag", "v1.2.0")
    versions.check_commit(project, "1.2.0")
    with pytest.raises(StepFailed, match=r"tag v1\.2\.1"):
        versions.check_commit(project, "1.2.1")

    (project / "new").write_text("")

    with pytest.raises(StepFailed, match="has changes"):
        versions.check_commit(project, "1.2.0")


def test_folder_with_something_in_it_is_refused(project: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/old.whl").write_text("")

    with pytest.raises(StepFailed, match="is not empty"):
        release(project, tmp_path / "out", is_draft=True)


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of this repository, whose last commit is made a release."""
    root, version = tmp_path_factory.mktemp("tagged") / "project", versions.version_of(ROOT)
    output_of("git", "clone", "--quiet", str(ROOT), str(root))
    path = root / "CHANGELOG.md"
    path.write_text(path.read_text().replace("## Unreleased", f"## {version}"))
    git(root, "commit", "--quiet", "--all", "--allow-empty", "--message", "Release")
    git(root, "tag", f"v{version}")
    return root


@pytest.fixture(scope="module")
def built(tagged: Path) -> Path:
    """The release of the clone, in a folder beside it."""
    out = tagged.parent / "first"
    release(tagged, out, is_draft=False)
    return out


def wheel_in(folder: Path) -> Path:
    (found,) = folder.glob("agentid_service-*.whl")
    return found


def pins(text: str) -> dict[str, str]:
    """Map each requirement of a locked file to its version."""
    return {name.lower(): found for name, found in re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE)}


@pytest.mark.drill
@pytest.mark.slow
def test_release_is_the_same_each_time(built: Path, tagged: Path, tmp_path: Path) -> None:
    """What is generated is that of the commit, or it would have been refused; what is packed has one form."""
    pack(tagged, tmp_path / "again", versions.version_of(tagged))

    output_of("sha256sum", "--check", "--strict", DIGESTS, cwd=built)
    lines = (built / DIGESTS).read_text().splitlines()
    listed = {line.split()[1] for line in lines}
    assert listed == {path.name for path in built.iterdir()} - {DIGESTS}
    again = digests(tmp_path / "again").splitlines()
    assert again == [line for line in lines if not line.endswith(" CHANGES.md")]
    assert {"CHANGES.md", "requirements.txt", f"agentid-{versions.version_of(ROOT)}.tgz"} < listed


@pytest.mark.drill
@pytest.mark.slow
def test_bill_of_materials_names_what_is_pinned(built: Path, tagged: Path) -> None:
    (path,) = built.glob("*.cdx.json")
    bill: dict[str, Any] = json.loads(path.read_text())
    locked = (tagged / "requirements.txt").read_text()

    assert (bill["bomFormat"], bill["metadata"]["component"]["name"]) == ("CycloneDX", "agentid-service")
    assert bill["metadata"]["component"]["version"] == versions.version_of(tagged)
    assert {one["name"].lower(): one["version"] for one in bill["components"]} == pins(locked)
    hashes = {
        found["content"]
        for one in bill["components"]
        for reference in one["externalReferences"]
        for found in reference["hashes"]
    }
    assert hashes == set(re.findall(r"--hash=sha256:(\w+)", locked))
    assert (built / "requirements.txt").read_text() == locked


@pytest.mark.drill
@pytest.mark.slow
def test_wheel_holds_the_service_and_no_tests(built: Path, tagged: Path) -> None:
    with zipfile.ZipFile(wheel_in(built)) as archive:
        names = set(archive.namelist())
        metadata = next(archive.read(name).decode() for name in names if name.endswith("/METADATA"))
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=tagged, capture_output=True, text=True, check=True
    )
    ours = {
        name
        for name in tracked.stdout.split("\0")
        if name.split("/")[0] in ROOMS | {"templates"}
        and "/tests/" not in name
        and not name.startswith("compliance/localdev/")
    }

    content = {name for name in names if ".dist-info/" not in name}
    assert ours <= content
    assert {name.split("/")[0] for name in content} == ROOMS | {"templates", "manage.py"}
    assert not [name for name in content if re.search(r"/tests/|\.pyc$|compiled-|localdev", name)]
    wanted = [line for line in (tagged / "requirements.in").read_text().split() if line.startswith("django-")]
    assert all(f"Requires-Dist: {name}" in metadata for name in wanted)


@pytest.mark.drill
@pytest.mark.slow
def test_installed_wheel_runs_away_from_the_repository(committed: None, built: Path, tmp_path: Path) -> None:
    """Offline: the dependencies are those of the tests, which have the same pins."""
    uv = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if uv is None:
        pytest.skip("uv is not installed")
    venv = tmp_path / "venv"
    output_of(sys.executable, "-m", "venv", "--without-pip", str(venv))
    python = str(venv / "bin/python")
    output_of(uv, "pip", "install", "--offline", "--no-deps", "--python", python, str(wheel_in(built)))
    (packages,) = venv.glob("lib/python*/site-packages")
    (mine,) = (path for path in sys.path if path.endswith("site-packages"))
    (packages / "dependencies.pth").write_text(f"{mine}\n")
    environment = node_environment() | {"STATIC_ROOT": str(tmp_path / "static"), "PYTHONSAFEPATH": "1"}
    environment = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
    manage = str(venv / "bin/agentid-manage")

    def says(*arguments: str) -> str:
        return output_of(manage, *arguments, cwd=tmp_path, env=environment)

    assert "no issues" in says("check")
    assert "[ ]" not in says("showmigrations", "--plan")
    says("collectstatic", "--noinput", "--verbosity", "0")
    assert (tmp_path / "static/console").is_dir()
    found = output_of(
        *(python, "-c", "import compliance, events; print(compliance.__file__, events.__file__)"),
        cwd=tmp_path,
        env=environment,
    )
    assert all(Path(path).is_relative_to(packages) for path in found.split())
    shown = "from django.template.loader import get_template as g; print(g('admin/overview.html').origin)"
    template = output_of(
        manage, "shell", "--verbosity", "0", "--command", shown, cwd=tmp_path, env=environment
    )
    assert Path(template.strip()).is_relative_to(packages)
