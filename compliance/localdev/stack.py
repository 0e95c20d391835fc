"""Bringing the whole service up and down: data, migrations, demo tenant, web, worker, sender and beat."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass

from . import processes
from .compilation import Compilation
from .console import StepFailed, say, step
from .environment import exports
from .layout import Layout
from .ports import HOST, port_of, web_listener
from .servers import Servers, in_use
from .state import locked
from .supervisor import clear_leftovers, running_supervisor

READY_SECONDS = 60.0
STOP = ((signal.SIGTERM, 40.0), (signal.SIGKILL, 5.0))


@dataclass(frozen=True)
class Stack:
    """One checkout's service."""

    layout: Layout

    @property
    def servers(self) -> Servers:
        return Servers(self.layout)

    def is_up(self) -> bool:
        return running_supervisor(self.layout) is not None

    def up(self, *, attached: bool) -> bool:
        """Bring everything up and wait until it answers; whether it was down before.

        `attached`: the stack ends with this process. Raises StepFailed; what runs by then stays up.
        """
        self.layout.prepare()
        with locked(self.layout.up_lock):
            if self.is_up():
                return False
            clear_leftovers(self.layout)
            servers = self.servers
            with (
                web_listener(self.layout.ports, asked=os.environ.get("PORT")) as listener,
                Compilation(self.layout) as compilation,
                in_use(servers),
            ):
                base_url = f"http://{HOST}:{port_of(listener)}"
                self._prepare_data(servers.environment(base_url=base_url, operator=True))
                compilation.wait()
                self._start_supervisor(servers.environment(base_url=base_url), listener, attached=attached)
        with step(f"web server at {base_url}"):
            self.wait_ready()
        return True

    def down(self) -> bool:
        """Stop everything, the data servers unless somebody else uses them; whether anything ran."""
        self.layout.prepare()
        process = running_supervisor(self.layout)
        if process is not None and not processes.stop(process, steps=STOP):
            raise StepFailed(f"the supervisor (pid {process.pid}) won't stop", hint="end it by hand")
        clear_leftovers(self.layout)
        servers = self.servers
        ours = (servers.postgres, servers.redis, servers.key_hosts)
        up = any(server.running() is not None for server in ours)
        if up and not servers.stop_if_unused():
            say("The data servers stay up: a ./test or another command uses them.")
        return process is not None or up

    def environment(self) -> dict[str, str]:
        """A Django process's environment with, besides, what `./run env` exports."""
        servers = self.servers
        contract = servers.contract() | servers.operator_contract()
        return servers.environment(operator=True) | exports(contract, self.layout.demo)

    def _prepare_data(self, environment: dict[str, str]) -> None:
        with step("databases, CAs, keys, demo tenant and log-ins"):
            self._manage(environment, "bootstrap_dev", "--migrate", "--state", str(self.layout.demo))

    def _manage(self, environment: dict[str, str], *arguments: str) -> None:
        """A manage.py command of the set-up, its output kept for the failure's message."""
        done = subprocess.run(
            [sys.executable, str(self.layout.root / "manage.py"), *arguments],
            env=environment,
            cwd=self.layout.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            log = self.layout.log / "manage.log"
            log.write_text(done.stdout + done.stderr)
            reason = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise StepFailed(
                f"manage.py {arguments[0]} failed: {''.join(reason)}",
                hint=f"read {log}, or try `./run manage {' '.join(arguments)}`",
            )

    def _start_supervisor(
        self, environment: dict[str, str], listener: socket.socket, *, attached: bool
    ) -> None:
        """Start it, and wait until it has taken over the use of the data servers."""
        command = [sys.executable, "-P", "-m", "compliance.localdev", "supervise", str(listener.fileno())]
        tie = [str(os.getpid())] if attached else []
        log = self.layout.log / "supervisor.log"
        child = processes.spawn(
            [*command, *tie],
            log=log,
            env=environment,
            cwd=self.layout.root,
            pass_fds=[listener.fileno()],
        )
        processes.wait_until(lambda: self.is_up() or child.poll() is not None, seconds=15)
        if not self.is_up():
            raise StepFailed("the supervisor did not start", hint=f"read {log}")

    def wait_ready(self) -> None:
        """Wait for /health/ready to answer 200.

        The answer is our own: while the supervisor lives, nobody else can listen on its port.
        """
        answer = "no answer"
        base_url = self.servers.base_url()
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline and self.is_up():
            answer = health(base_url)
            if answer == "200" and self.is_up():
                return
            time.sleep(0.1)
        raise StepFailed(
            f"the service is not ready: {answer}",
            hint=f"read {self.layout.log}/web.log; `./run status` shows what is down, `./run stop` ends it",
        )


def health(base_url: str) -> str:
    """ "200" when the service is ready, else what it says is wrong."""
    try:
        with urllib.request.urlopen(f"{base_url}/health/ready", timeout=5) as response:  # noqa: S310
            return str(response.status)
    except urllib.error.HTTPError as error:
        text = error.read(400).decode("utf-8", "replace")
        return f"{error.code} {' '.join(text.split())[:200]}"
    except (OSError, ValueError) as error:
        return str(error)


def play(stack: Stack, arguments: Sequence[str] = ()) -> int:
    """Play the scenario against the running stack, its steps on stdout; 0 when each was as specified."""
    command = [sys.executable, str(stack.layout.root / "manage.py"), "demo", *arguments]
    return processes.run_foreground(command, env=stack.environment(), cwd=stack.layout.root)
