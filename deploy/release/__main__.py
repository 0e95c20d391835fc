"""`./run release [--draft] [--out FOLDER]`: packages, bill of materials, changes, digests of one version."""

import hashlib
import os
import shutil
import sys
from argparse import ArgumentParser
from functools import partial
from pathlib import Path

from compliance.localdev.console import StepFailed, complain, say, step
from compliance.localdev.layout import ROOT
from deploy.release import client_package, typescript_package, versions
from deploy.release.typescript_package import NODE

DIGESTS = "SHA256SUMS"


def main() -> int:
    parser = ArgumentParser(prog="./run release", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="an empty or new folder (dist)")
    parser.add_argument(
        "--draft",
        action="store_true",
        help="build without a tag, from changed files, without a changelog's section",
    )
    given = parser.parse_args()
    try:
        release(ROOT, given.out.resolve(), is_draft=given.draft)
    except StepFailed as failure:
        complain(failure)
        return 1
    return 0


def release(root: Path, out: Path, *, is_draft: bool) -> None:
    """Write everything of the release into `out`. Raises: StepFailed."""
    version = versions.version_of(root)
    if out.exists() and any(out.iterdir()):
        raise StepFailed(f"{out} is not empty", hint="remove it, or name another by --out")
    typescript = root / typescript_package.FOLDER
    with step("client packages of the OpenAPI description"):
        # Before the check of the commit, which refuses one whose client is of another description.
        client_package.write(root)
        versions.output_of("npm", "ci", "--no-audit", "--no-fund", folder=typescript, hint=NODE)
        typescript_package.write(root)
    changes = "" if is_draft else versions.changes_of(root, version)
    if not is_draft:
        versions.check_commit(root, version)
    pack(root, out, version)
    if changes:
        (out / "CHANGES.md").write_text(changes)
    (out / DIGESTS).write_text(digests(out))
    say(f"{version}{' (a draft)' if is_draft else ''} is in {out}")


def pack(root: Path, out: Path, version: str) -> None:
    """Write packages and bill of materials into `out`, of the files as they are. Raises: StepFailed."""
    typescript = root / typescript_package.FOLDER
    out.mkdir(parents=True, exist_ok=True)
    time = versions.output_of("git", "log", "-1", "--format=%ct", folder=root, hint=versions.CHECKOUT).strip()
    # Builds take the commit's time for their own.
    environment = {**os.environ, "SOURCE_DATE_EPOCH": time}
    # The names of private package indexes are nobody's business.
    environment = {name: value for name, value in environment.items() if not name.startswith(("PIP_", "UV_"))}
    build = partial(
        versions.output_of, sys.executable, "-m", environment=environment, hint="read what it says"
    )
    for name, folder in {"service": root, "client package": root / "sdk"}.items():
        with step(f"wheel of the {name}"):
            build("hatchling", "build", "--target", "wheel", "--directory", str(out), folder=folder)
    with step("TypeScript package"):
        versions.output_of("npm", "pack", "--pack-destination", str(out), folder=typescript, hint=NODE)
    with step("bill of materials"):
        bill = out / f"agentid-service-{version}.cdx.json"
        form = ("--output-reproducible", "--output-format", "JSON", "--validate", "--output-file", str(bill))
        project = ("--pyproject", "pyproject.toml")
        build("cyclonedx_py", "requirements", *project, *form, "requirements.txt", folder=root)
    shutil.copyfile(root / "requirements.txt", out / "requirements.txt")


def digests(folder: Path) -> str:
    """Return what `sha256sum --check` reads, of every file of the folder."""
    files = sorted(path for path in folder.iterdir() if path.name != DIGESTS)
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


if __name__ == "__main__":
    sys.exit(main())
