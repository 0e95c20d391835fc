"""Where nodes and logs are: on loopback, or, as root, in namespaces and on a disk of their own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from compliance.localdev.console import StepFailed
from compliance.localdev.ports import HOST

INSIDE = "SERVICE_CLUSTER_NAMESPACES"
"""Set in a process that has network and mount namespaces of its own."""
PREFIX = "10.213.0"


class Network:
    """All nodes on loopback, told apart by their ports; no link between them can be cut."""

    can_cut = False

    def host(self, node: str) -> str:
        """Return a node's address."""
        return HOST

    def inside(self, node: str) -> list[str]:
        """Return what precedes a command that runs on a node."""
        return []

    def cut(self, one: str, other: str) -> None:
        """Have two nodes reach each other no more; all others still reach both."""
        raise StepFailed("no link can be cut on loopback", hint="run as root")

    def mend(self, one: str, other: str) -> None:
        """Take `cut()` back."""

    @contextmanager
    def up(self) -> Iterator[None]:
        """The network inside the block."""
        yield


class Namespaces(Network):
    """Each node behind a bridge, in a namespace that ends with the last process of ours."""

    can_cut = True

    def __init__(self, nodes: Sequence[str]) -> None:
        self._nodes = list(nodes)

    def host(self, node: str) -> str:
        return f"{PREFIX}.{self._nodes.index(node) + 1}"

    def inside(self, node: str) -> list[str]:
        return ["ip", "netns", "exec", self._name(node)]

    def cut(self, one: str, other: str) -> None:
        for here, there in ((one, other), (other, one)):
            _ip("-n", self._name(here), "route", "add", "blackhole", f"{self.host(there)}/32")

    def mend(self, one: str, other: str) -> None:
        for here, there in ((one, other), (other, one)):
            _ip("-n", self._name(here), "route", "del", "blackhole", f"{self.host(there)}/32")

    @contextmanager
    def up(self) -> Iterator[None]:
        _ip("link", "set", "lo", "up")
        _ip("link", "add", "bridge", "type", "bridge")
        _ip("address", "add", f"{PREFIX}.254/24", "dev", "bridge")
        _ip("link", "set", "bridge", "up")
        for node in self._nodes:
            _ip("netns", "add", self._name(node))
            _ip(
                "link", "add", f"to-{node}", "type", "veth", "peer", "name", "eth0", "netns", self._name(node)
            )
            _ip("link", "set", f"to-{node}", "master", "bridge", "up")
            _ip("-n", self._name(node), "address", "add", f"{self.host(node)}/24", "dev", "eth0")
            _ip("-n", self._name(node), "link", "set", "eth0", "up")
            _ip("-n", self._name(node), "link", "set", "lo", "up")
        try:
            yield
        finally:
            for node in self._nodes:
                _ip("netns", "delete", self._name(node))

    @staticmethod
    def _name(node: str) -> str:
        """Name a node's namespace: unlike those of another run on this machine."""
        return f"cluster-{os.getpid()}-{node}"


SIZE = 128 * 1024 * 1024
PIECE = bytes(1024 * 1024)


@dataclass(frozen=True)
class LogDisk:
    """A file system in memory at `folder`, seen in our mount namespace only; `kept` gets the logs."""

    folder: Path
    kept: Path

    def mount(self) -> None:
        command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "logs", str(self.folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise StepFailed(f"no disk for logs: {done.stderr.strip()}", hint="run without root")

    def keep(self) -> None:
        """Copy the logs to where they outlive us."""
        shutil.copytree(self.folder, self.kept, dirs_exist_ok=True)

    def fill(self) -> str:
        """Write until nothing fits any more."""
        with (self.folder / "filler").open("wb", buffering=0) as filler:
            for size in (len(PIECE), 4096, 1):
                with suppress(OSError):
                    while filler.write(PIECE[:size]) == size:
                        pass
        return str(self.folder)

    def empty(self) -> None:
        (self.folder / "filler").unlink()


LOOPBACK = Network()


def enter_namespaces(module: str, arguments: Sequence[str]) -> None:
    """As root, run the module again in namespaces of its own, which end with it; does not return then."""
    unshare = shutil.which("unshare")
    if INSIDE in os.environ or os.geteuid() != 0 or unshare is None or shutil.which("ip") is None:
        return
    os.environ[INSIDE] = "1"
    command = [unshare, "--net", "--mount", "--propagation", "private", "--"]
    os.execv(unshare, [*command, sys.executable, "-m", module, *arguments])  # noqa: S606


def has_namespaces() -> bool:
    """Whether this process has network and mount namespaces of its own."""
    return INSIDE in os.environ


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise StepFailed(f"ip {' '.join(arguments)} failed: {done.stderr.strip()}", hint="run without root")
