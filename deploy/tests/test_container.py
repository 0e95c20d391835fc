"""The image, built on a root file system made here, and run read-only and without rights."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from django.conf import settings

from compliance.tests.nodes import node_environment
from compliance.tests.waiting import eventually
from deploy.tests.programs import DEPLOY, output_of, program
from deploy.tests.test_balancers import free_port

ROOT = Path(settings.BASE_DIR)
LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")
STARTS_WITHIN = 120.0  # seconds
FIND_LEFTOVERS = "find /opt/service/app -name 'compiled-*' -o -type d -name tests; which cc || true"

pytestmark = pytest.mark.drill


def podman(folder: Path) -> tuple[str, ...]:
    """Podman with storage of its own; runc, since crun refuses hosts with both versions of cgroups."""
    program("runc")
    return (program("podman"), "--runtime", "runc", "--root", str(folder / "images"))


@pytest.fixture(scope="module")
def storage() -> Iterator[Path]:
    """A folder for images, emptied of what is still mounted in it: pytest's own folders outlive the tests."""
    folder = Path(tempfile.mkdtemp(prefix="container-"))
    yield folder
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    below = [mount for mount in mounts if Path(mount).is_relative_to(folder)]
    for mount in sorted(below, key=len, reverse=True):
        subprocess.run(["umount", "--lazy", mount], check=True)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def image(storage: Path) -> Iterator[tuple[str, ...]]:
    """Podman's command line, with the image `service:drill` in its storage."""
    if os.geteuid():
        pytest.skip("needs root: mmdebstrap and podman without a user namespace")
    bootstrap, folder = program("mmdebstrap"), storage
    command = podman(folder)
    base, wheels = folder / "base.tar", folder / "wheels"
    output_of(bootstrap, "--quiet", "--variant=minbase", "bookworm", str(base))
    output_of(*command, "import", "--quiet", str(base), "service-base:12")
    # Debian's Python is older than this one: markers are left out, so that its packages come along.
    pinned = re.sub(r" ; [^\\\n]*\\$", r" \\", (ROOT / "requirements.txt").read_text(), flags=re.MULTILINE)
    (folder / "all.txt").write_text(pinned)
    pip = (sys.executable, "-m", "pip") if shutil.which("pip") is None else ("pip",)
    output_of(
        *(*pip, "download", "-q", "--no-deps", "--require-hashes", "--only-binary", ":all:"),
        *("-r", str(folder / "all.txt"), "-d", str(wheels)),
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    output_of(
        *(*command, "build", "--quiet", "--format", "docker", "--isolation", "chroot", "--network", "host"),
        *(*LIMITS, "--build-arg", "BASE_IMAGE=localhost/service-base:12"),
        *("--build-arg", "PIP_OPTIONS=--no-index --find-links /wheels", "--volume", f"{wheels}:/wheels:ro"),
        *("-f", str(DEPLOY / "container/Containerfile"), "-t", "service:drill"),
        *("--ignorefile", str(DEPLOY / "container/Containerfile.dockerignore"), str(ROOT)),
    )
    yield command
    subprocess.run([*command, "system", "reset", "--force"], check=False, capture_output=True)


@pytest.fixture
def container(django_db_setup: None, image: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    """A running web server on the databases of the suite: podman's command line and the port."""
    port = free_port()
    given = ("DATABASE_URL", "TEST_DATABASE_URL", "REDIS_URL", "SECRET_KEY", "ENCRYPTION_KEYS")
    environment = {name: value for name, value in node_environment().items() if name in given}
    hidden = [word for name in given for word in ("--env", name)]
    output_of(
        *(*image, "run", "--detach", "--name", "drill", "--network", "host", *LIMITS, "--read-only"),
        *("--tmpfs", "/tmp:mode=1777", "--cap-drop", "all", "--security-opt", "no-new-privileges", *hidden),
        *("--env", f"PORT={port}", "--env", "WEB_WORKERS=1", "localhost/service:drill"),
        env={**os.environ, **environment},
    )
    yield image, port
    subprocess.run([*image, "rm", "--force", "--time", "10", "drill"], check=False, capture_output=True)


def answer(port: int, path: str) -> requests.Response | None:
    try:
        return requests.get(f"http://127.0.0.1:{port}{path}", timeout=10)
    except requests.ConnectionError:
        return None


def test_image_serves_without_rights_on_a_read_only_root(container: tuple[tuple[str, ...], int]) -> None:
    command, port = container

    assert eventually(lambda: answer(port, "/health/live") is not None, seconds=STARTS_WITHIN)
    live, ready = answer(port, "/health/live"), answer(port, "/health/ready")

    assert live is not None
    assert live.json() == {"status": "ok"}
    assert ready is not None
    checks = ready.json()["checks"]
    assert (checks["database_live"], checks["database_test"], checks["redis"]) == ("ok", "ok", "ok")
    output_of(*command, "healthcheck", "run", "drill")
    status = output_of(*command, "exec", "drill", "cat", "/proc/1/status")
    assert re.search(r"^Uid:\s+10001\s+10001", status, re.MULTILINE)
    assert re.search(r"^CapEff:\s+0+$", status, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\s+1$", status, re.MULTILINE)
    refused = subprocess.run(
        [*command, "exec", "drill", "touch", "/opt/service/app/new"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Read-only file system" in refused.stderr


def test_image_has_the_compiled_scorer_and_no_tests(image: tuple[str, ...]) -> None:
    looked = subprocess.run(
        [
            *(*image, "run", "--rm", "--network", "host", *LIMITS, "localhost/service:drill"),
            *(
                "sh",
                "-c",
                "find /opt/service/app -name 'compiled-*' -o -type d -name tests; which cc || true",
            ),
        ],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )

    assert [Path(line).name.partition("-")[0] for line in looked.stdout.split()] == ["compiled"]
