"""A container engine with storage and networks of its own, and the service's image built in it."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings

from deploy.tests.programs import DEPLOY, output_of, program

ROOT = Path(settings.BASE_DIR)
SERVICE, BASE = "localhost/service:drill", "localhost/service-base:12"

# crun refuses hosts with both versions of cgroups. Podman's own limits are above those of some machines.
CONTAINERS = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "{folder}/tmp"
volume_path = "{folder}/volumes"
[network]
network_config_dir = "{folder}/networks"
"""
STORAGE = """\
[storage]
driver = "overlay"
graphroot = "{folder}/images"
runroot = "{folder}/run"
"""


@dataclass(frozen=True)
class Engine:
    """Podman over one folder. What it starts itself sees the same folder through `environment`."""

    folder: Path
    environment: dict[str, str]

    def __call__(self, *words: str, **variables: str) -> str:
        """Return what `podman WORDS` prints; fail if it fails. Variables are added to its environment."""
        return output_of(program("podman"), *words, env={**self.environment, **variables})

    def attempt(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program("podman"), *words], env=self.environment, capture_output=True, text=True, check=False
        )


def start_engine(folder: Path) -> Engine:
    """Return an engine that can run containers, with the base image; skip the test where none can work."""
    if os.geteuid():
        pytest.skip("needs root: mmdebstrap and podman without a user namespace")
    program("runc")
    program("podman")
    bootstrap = program("mmdebstrap")
    spaces = subprocess.run(
        [program("unshare"), "--mount", "--pid", "--net", "--fork", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    if spaces.returncode:
        pytest.skip(f"this machine allows no namespaces: {spaces.stderr.strip()}")
    (folder / "containers.conf").write_text(CONTAINERS.format(folder=folder))
    (folder / "storage.conf").write_text(STORAGE.format(folder=folder))
    environment = {
        **os.environ,
        "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
        "CONTAINERS_CONF": str(folder / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        # Where systemd is not the first process no timer can ask for health: the tests ask themselves.
        "DISABLE_HC_SYSTEMD": "true",
    }
    engine = Engine(folder, environment)
    output_of(bootstrap, "--quiet", "--variant=minbase", "bookworm", str(folder / "base.tar"))
    engine("import", "--quiet", str(folder / "base.tar"), BASE)
    (folder / "base.tar").unlink()
    ran = engine.attempt("run", "--rm", "--network", "host", BASE, "true")
    if ran.returncode:
        pytest.skip(f"podman can't run a container here: {ran.stderr.strip()}")
    return engine


def build_service(engine: Engine) -> None:
    """Build the image `service:drill`."""
    wheels, pins = engine.folder / "wheels", engine.folder / "all.txt"
    # Debian's Python is older than this one: markers are left out, so that its packages come along.
    pins.write_text(
        re.sub(r" ; [^\\\n]*\\$", r" \\", (ROOT / "requirements.txt").read_text(), flags=re.MULTILINE)
    )
    pip = (sys.executable, "-m", "pip") if shutil.which("pip") is None else ("pip",)
    output_of(
        *(*pip, "download", "-q", "--no-deps", "--require-hashes", "--only-binary", ":all:"),
        *("-r", str(pins), "-d", str(wheels)),
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    build(
        engine,
        *("--build-arg", "PIP_OPTIONS=--no-index --find-links /wheels", "--volume", f"{wheels}:/wheels:ro"),
        *("-f", str(DEPLOY / "container/Containerfile"), "-t", SERVICE),
        *("--ignorefile", str(DEPLOY / "container/Containerfile.dockerignore"), str(ROOT)),
    )


def build(engine: Engine, *words: str) -> None:
    """Build an image on the base."""
    engine(
        *("build", "--quiet", "--format", "docker", "--isolation", "chroot", "--network", "host"),
        *("--build-arg", f"BASE_IMAGE={BASE}", *words),
    )


def remove(engine: Engine) -> None:
    """Remove all containers, volumes, networks and images."""
    engine.attempt("system", "reset", "--force")


def unmount_below(folder: Path) -> None:
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    below = [mount for mount in mounts if Path(mount).is_relative_to(folder)]
    for mount in sorted(below, key=len, reverse=True):
        subprocess.run(["umount", "--lazy", mount], check=True)
