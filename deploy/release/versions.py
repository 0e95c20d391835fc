"""The version of a release, which everything that bears one must agree on."""

import json
import re
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path

from compliance.localdev.console import StepFailed

CHART = Path("deploy/helm/Chart.yaml")
TYPESCRIPT = Path("sdk-typescript/package.json")
CHECKOUT = "release from a git checkout"


def version_of(root: Path) -> str:
    """Return the version of pyproject.toml.

    Raises: StepFailed if a client package or the chart has another.
    """
    version = _of_project(root)
    chart = (root / CHART).read_text()
    others = {
        "sdk/pyproject.toml": _of_project(root / "sdk"),
        str(TYPESCRIPT): json.loads((root / TYPESCRIPT).read_text())["version"],
        f"{CHART}, version": _field(chart, "version"),
        f"{CHART}, appVersion": _field(chart, "appVersion"),
    }
    wrong = [f"{name} says {found}" for name, found in others.items() if found != version]
    if wrong:
        raise StepFailed(
            f"pyproject.toml says {version}, {', '.join(wrong)}", hint="give all the same version"
        )
    return version


def changes_of(root: Path, version: str) -> str:
    """Return the newest section of CHANGELOG.md, headed `## VERSION`, with or without a date.

    Raises: StepFailed if the newest is another's, that of what is unreleased, or empty.
    """
    sections = re.split(r"^## ", (root / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
    heading, _, changes = (sections[0] if sections else "").partition("\n")
    if heading.split(" ")[0] != version or not changes.strip():
        raise StepFailed(
            f"CHANGELOG.md begins with {heading or 'nothing'}, not with the changes of {version}",
            hint="head what is unreleased with the version",
        )
    return changes.strip() + "\n"


def check_commit(root: Path, version: str) -> None:
    """Raises: StepFailed unless the commit bears the tag `vVERSION` and nothing is changed beside it."""
    if output_of("git", "status", "--porcelain", folder=root, hint=CHECKOUT):
        raise StepFailed("the working tree has changes", hint="commit or remove them")
    tags = output_of("git", "tag", "--points-at", "HEAD", folder=root, hint=CHECKOUT).split()
    if f"v{version}" not in tags:
        raise StepFailed(f"the commit does not bear the tag v{version}", hint=f"git tag --sign v{version}")


def _of_project(folder: Path) -> str:
    return str(tomllib.loads((folder / "pyproject.toml").read_text())["project"]["version"])


def _field(text: str, name: str) -> str:
    found = re.search(rf'^{name}: "?([^"\n]+)"?$', text, re.MULTILINE)
    return found[1] if found else "nothing"


def output_of(*command: str, folder: Path, hint: str, environment: Mapping[str, str] | None = None) -> str:
    """Return what a program prints. Raises: StepFailed, with what it said and the hint, if it fails."""
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        said = f"{getattr(error, 'stdout', '')}{getattr(error, 'stderr', '')}".strip()
        raise StepFailed(f"{' '.join(command[:3])}: {error} {said}", hint=hint) from None
    return done.stdout
