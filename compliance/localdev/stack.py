"""Bringing the whole service up and down."""

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property

import requests

from .console import StepFailed, say, step
from .environment import exports
from .layout import Layout
from .ports import HOST, web_listener
from .servers import processes
from .servers.servers import Servers, in_use
from .servers.supervisor import clear_leftovers
from .state import locked

READY_SECONDS = 60.0


@dataclass(frozen=True)
class Stack:
    layout: Layout

    @cached_property
    def servers(self) -> Servers:
        return Servers(self.layout)

    def is_up(self) -> bool:
        return self.layout.supervisor.running() is not None

    def up(self) -> bool:
        """Bring everything up and wait until it answers; return whether it was down.

        Raises StepFailed; what runs by then stays up.
        """
        self.layout.prepare()
        with locked(self.layout.up_lock):
            if self.is_up():
                with locked(self.layout.setup_lock):
                    self.servers.start()
                self._wait_ready()
                return False
            clear_leftovers(self.layout)
            servers = self.servers
            with web_listener(self.layout.ports, asked=os.environ.get("PORT")) as listener, in_use(servers):
                base_url = f"http://{HOST}:{listener.getsockname()[1]}"
                environment = servers.environment(base_url=base_url, operator=True)
                if servers.lack_tables():
                    with step("tables of both databases"):
                        self._manage(environment, "migrate", "--database", "default")
                        servers.copy_tables()
                with step("migrations, CAs, keys, demo tenant and log-ins"):
                    self._manage(environment, "bootstrap_dev", "--migrate", "--state", str(self.layout.demo))
                # Once its pid file is there, it holds the users' lock itself.
                fd, log = listener.fileno(), self.layout.log / "supervisor.log"
                command = [sys.executable, "-P", "-m", "compliance.localdev", "supervise", str(fd)]
                environment = servers.environment(base_url=base_url)
                processes.spawn(command, log=log, env=environment, cwd=self.layout.run, pass_fds=[fd])
                if not processes.wait_until(self.is_up, seconds=15):
                    raise StepFailed("the supervisor did not start", hint=f"read {log}")
        with step(f"web server at {base_url}"):
            self._wait_ready()
        compile_scorer(self.layout, "--background")
        return True

    def down(self) -> bool:
        """Stop everything, except data servers in use elsewhere; return whether anything ran.

        A start that is under way is waited for, and what it has started is stopped.
        """
        self.layout.prepare()
        with ExitStack() as held:
            try:
                held.enter_context(locked(self.layout.up_lock, wait=False))
            except BlockingIOError:
                say("  … another ./run is starting the service, which is stopped then")
                held.enter_context(locked(self.layout.up_lock))
            ran = self.layout.supervisor.stop()
            clear_leftovers(self.layout)
        up = self.servers.postgres.running() is not None or self.servers.redis.running() is not None
        if up and not self.servers.stop_if_unused():
            say("The data servers stay up: a ./test or another command uses them.")
        return ran or up

    def environment(self) -> dict[str, str]:
        """Return an operator's environment, with what `./run env` exports."""
        environment = self.servers.environment(operator=True)
        return environment | exports(environment, self.layout.demo)

    def _manage(self, environment: dict[str, str], *arguments: str) -> None:
        command = [sys.executable, str(self.layout.root / "manage.py"), *arguments]
        done = processes.captured(command, env=environment, cwd=self.layout.root)
        if done.returncode != 0:
            hint = f"try `./run manage {' '.join(arguments)}`"
            raise StepFailed(f"manage.py {arguments[0]} failed: {processes.tail(done, 1)}", hint=hint)

    def _wait_ready(self) -> None:
        """Wait for /health/ready to answer 200; while the supervisor lives, only our server has the port."""
        url = self.servers.base_url()
        processes.wait_until(
            lambda: health(url) == "200" or not self.is_up(), seconds=READY_SECONDS, pause=0.1
        )
        if (answer := health(url)) != "200" or not self.is_up():
            answer = answer if self.is_up() else "it has ended, or was stopped"
            hint = f"read {self.layout.log}/web.log; `./run status` shows the parts, `./run stop` ends it"
            raise StepFailed(f"the service is not ready: {answer}", hint=hint)


def health(base_url: str) -> str:
    """Return "200" if the service is ready, else what is wrong."""
    try:
        answer = requests.get(f"{base_url}/health/ready", timeout=5)
    except requests.RequestException as error:
        return str(error)
    return "200" if answer.ok else f"{answer.status_code} {' '.join(answer.text.split())[:200]}"


def play(stack: Stack, arguments: Sequence[str] = ()) -> int:
    """Play the demo against the running stack; return 0 if each step went as specified."""
    command = [sys.executable, str(stack.layout.root / "manage.py"), "demo", *arguments]
    return processes.run_foreground(command, env=stack.environment(), cwd=stack.layout.root)


def compile_scorer(layout: Layout, *options: str) -> None:
    """Run `python -m events.risk.compiling` with `options`; say what it says."""
    if os.environ.get("COMPILED") == "0":
        return
    command = [sys.executable, "-P", "-m", "events.risk.compiling", *options]
    done = processes.captured(command, cwd=layout.root, env={**os.environ, "PYTHONPATH": str(layout.root)})
    if told := (done.stdout + done.stderr).strip():
        say(f"  {'!' if done.returncode else '…'} {told}")
