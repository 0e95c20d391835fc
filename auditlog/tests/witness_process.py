"""A witness as its operator runs it: a process of its own, over loopback."""

import http.client
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from auditlog.tests.log_keys import NumberTree, SigningKey, signed
from auditlog.tlog.checkpoints import AddCheckpoint
from auditlog.tlog.notes import VerifierKey

SECONDS = 60.0
NAME = "witness.example/w1"
PLAIN = ("-m", "auditlog.witness")
LOG, NEXT_LOG, OTHER_LOG = SigningKey(), SigningKey(), SigningKey("other.example/log")
TREE, FORK = NumberTree(), NumberTree(branch=1, fork=3)


def make_request(old: int, new: int, *, tree: NumberTree = TREE, key: SigningKey = LOG) -> AddCheckpoint:
    note = signed(tree.checkpoint(new, key.name).text(), key)
    return AddCheckpoint(old, tree.consistency(min(old, new), new), note)


@dataclass
class WitnessProcess:
    """A witness that runs, its public key, and its port on 127.0.0.1."""

    process: "subprocess.Popen[str]"
    key: VerifierKey
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, str, str]:
        """Return status, content type and text of the answer."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)) as client:
            client.request(method, path, body)
            answer = client.getresponse()
            return answer.status, answer.headers["Content-Type"], answer.read().decode()

    def add(self, request: AddCheckpoint) -> tuple[int, str, str]:
        return self.ask("POST", "/add-checkpoint", request.encode().encode())

    def kill(self) -> None:
        """`kill -9`."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


def start_witness(
    state: Path, log_keys: Sequence[VerifierKey], *, program: Sequence[str] = PLAIN
) -> WitnessProcess:
    """Start one on a free port, with an empty environment."""
    command = [sys.executable, *program, "--listen", "127.0.0.1:0", "--state", str(state), "--name", NAME]
    for key in log_keys:
        command += ["--log", key.encode()]
    process = subprocess.Popen(command, cwd=settings.BASE_DIR, env={}, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    vkey, listening = process.stdout.readline().strip(), process.stdout.readline()
    return WitnessProcess(process, VerifierKey.parse(vkey), int(listening.rpartition(" ")[2]))
