"""What `./run` can do: one function for each command."""

import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from .binaries import postgres_bin
from .compilation import Compilation
from .console import StepFailed, complain, say, seconds_since_call, step
from .environment import as_shell, exports
from .install import prepare
from .layout import Layout
from .processes import run_foreground
from .servers import Servers, in_use
from .stack import Stack, play
from .state import locked, read_json
from .status import as_table, survey
from .supervisor import Supervisor, running_supervisor

HELP = """\
./run                     set up, start the service, play the life of an agent, stay up until Ctrl-C
./run --detach            the same, but return after the scenario and leave the service running
./run stop                stop everything            ./run status   what is up (exit code 0: all of it)
./run stop|start postgres|redis                      one data server down and up again, for drills
./run env                 shell exports of addresses, keys and log-ins:  eval "$(./run env)"
./run demo                play the scenario against the running service; exit code 0 or 1
./run manage ARGUMENTS    manage.py with the service's environment (starts the data servers if need be)
./run exec COMMAND …      any program of .venv with that environment
./run bench NAME …        measure: `./run bench ingest --help`
./run attack …            attack a service of its own, on loopback only: `./run attack --help`

PORT chooses the web server's port (8000, or a free one). LOCAL_DIR moves the data from .local/.
DATABASE_URL with TEST_DATABASE_URL, REDIS_URL and PKCS11_MODULE replace the embedded servers;
DATABASE_OWNER_URL with TEST_DATABASE_OWNER_URL then migrate, if given.
"""
DATA_SERVERS = ("postgres", "redis")


def run_command(layout: Layout, arguments: list[str]) -> int:
    """Do what `arguments` ask; the process's exit code."""
    name, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    command = COMMANDS.get(name)
    if command is None:
        raise StepFailed(f"there is no `./run {name}`", hint="`./run --help` lists what there is")
    return command(layout, rest)


def run(layout: Layout, arguments: list[str]) -> int:
    """Up, scenario, and stay until Ctrl-C or `./run stop`; 1 when the scenario failed."""
    _no_more(arguments)
    stack = Stack(layout)
    if stack.is_up():
        return _already_up(stack)
    code: int | None = None
    try:
        stack.up(attached=True)
        code = play(stack)
        _introduce(layout, code)
        say("Ctrl-C stops the service.")
        while stack.is_up():
            time.sleep(0.3)
        say("The service was stopped.")
    except KeyboardInterrupt:
        if code is None:
            raise
    finally:
        with step("stop"):
            stack.down()
    return code


def detach(layout: Layout, arguments: list[str]) -> int:
    """Up and scenario; the service stays. Non-zero when a step or the scenario failed."""
    _no_more(arguments)
    stack = Stack(layout)
    if not stack.up(attached=False):
        return _already_up(stack)
    code = play(stack)
    _introduce(layout, code)
    return code


def stop(layout: Layout, arguments: list[str]) -> int:
    """Everything, or the one data server named."""
    if arguments:
        return _one_server(layout, arguments, start=False)
    with step("stop"):
        ran = Stack(layout).down()
    if not ran:
        say("Nothing was running.")
    return 0


def start(layout: Layout, arguments: list[str]) -> int:
    """The one data server named, or as `--detach`."""
    return _one_server(layout, arguments, start=True) if arguments else detach(layout, arguments)


def status(layout: Layout, arguments: list[str]) -> int:
    """0 when all parts are up, else 1."""
    _no_more(arguments)
    lines = survey(layout)
    sys.stdout.write(as_table(lines) + "\n")
    return 0 if all(line.up for line in lines) else 1


def env(layout: Layout, arguments: list[str]) -> int:
    """Nothing but exports on stdout; needs a service that was started once."""
    _no_more(arguments)
    if not layout.demo.exists():
        raise StepFailed("the service was never started here", hint="`./run --detach` first")
    servers = Servers(layout)
    if running_supervisor(layout) is None:
        say("The service is not running; these are its last addresses.")
    sys.stdout.write(as_shell(exports(servers.contract() | servers.operator_contract(), layout.demo)))
    return 0


def demo(layout: Layout, arguments: list[str]) -> int:
    """The scenario once more, against the running service."""
    stack = Stack(layout)
    if not stack.is_up():
        raise StepFailed("the service is not running", hint="`./run --detach` first")
    return play(stack, arguments)


def manage(layout: Layout, arguments: list[str]) -> int:
    """`manage.py ARGUMENTS`."""
    return _with_environment(layout, [sys.executable, str(layout.root / "manage.py"), *arguments])


def execute(layout: Layout, arguments: list[str]) -> int:
    """Any program, those of the virtual environment and of PostgreSQL first."""
    if not arguments:
        raise StepFailed("nothing to execute", hint="`./run exec mypy .`, say")
    return _with_environment(layout, ["/usr/bin/env", *arguments])


def bench(layout: Layout, arguments: list[str]) -> int:
    """`python -m bench.NAME`; without a name, the names there are.

    What the service is measured against is installed at the first call, where the service never sees it.
    """
    names = sorted(path.stem for path in (layout.root / "bench").glob("[!_]*.py"))
    if not arguments or arguments[0] not in names:
        raise StepFailed("which benchmark?", hint=f"./run bench {'|'.join(names) or '(there is none yet)'}")
    layout.prepare()
    with Compilation(layout):
        prepare("bench", venv=layout.bench_venv)
    return _with_environment(layout, [sys.executable, "-m", f"bench.{arguments[0]}", *arguments[1:]])


def attack(layout: Layout, arguments: list[str]) -> int:
    """`python -m bench.attack`: 0 when nothing was found, 6 when something was.

    It sends what Schemathesis generates, too, so it needs what the tests need.
    """
    layout.prepare()
    prepare("test")
    return _with_environment(layout, [sys.executable, "-m", "bench.attack", *arguments])


def supervise(layout: Layout, arguments: list[str]) -> int:
    """The supervisor itself; started by `up`, not by people."""
    parent = int(arguments[1]) if len(arguments) > 1 else None
    with socket.socket(fileno=int(arguments[0])) as listener:
        return Supervisor(layout, listener, parent=parent).run()


def show_help(layout: Layout, arguments: list[str]) -> int:
    sys.stdout.write(HELP)
    return 0


COMMANDS: dict[str, Callable[[Layout, list[str]], int]] = {
    "": run,
    "--detach": detach,
    "-d": detach,
    "stop": stop,
    "start": start,
    "status": status,
    "env": env,
    "demo": demo,
    "manage": manage,
    "exec": execute,
    "bench": bench,
    "attack": attack,
    "--help": show_help,
    "-h": show_help,
    "help": show_help,
}


def _with_environment(layout: Layout, command: list[str]) -> int:
    """Run `command` where the caller stands, with the data servers up and the stack's environment."""
    # Beside a running service nothing is started: a server that is down there was stopped on purpose.
    start = (lambda: None) if running_supervisor(layout) is not None else None
    with in_use(Servers(layout), start=start):
        environment = Stack(layout).environment()
        folders = (str(Path(sys.executable).parent), str(postgres_bin()), environment.get("PATH", os.defpath))
        environment["PATH"] = os.pathsep.join(folders)
        return run_foreground(command, env=environment, cwd=Path.cwd())


def _one_server(layout: Layout, arguments: list[str], *, start: bool) -> int:
    if arguments[0] not in DATA_SERVERS or len(arguments) > 1:
        raise StepFailed("which data server?", hint=f"name one of: {', '.join(DATA_SERVERS)}")
    layout.prepare()
    servers = Servers(layout)
    with locked(layout.setup_lock), step(f"{'start' if start else 'stop'} {arguments[0]}"):
        if arguments[0] == "postgres":
            changed = servers.postgres.start() if start else servers.postgres.stop()
        else:
            changed = servers.redis.start() if start else servers.redis.stop()
    if not changed:
        say(f"It was {'up' if start else 'down'} already.")
    return 0


def _already_up(stack: Stack) -> int:
    """A data server that went down meanwhile is brought up again; the service finds it by itself.

    Raises StepFailed when it doesn't, or when its web server is down.
    """
    layout, servers = stack.layout, stack.servers
    with locked(layout.setup_lock):
        servers.start()
    stack.wait_ready()
    say(f"The service is already up at {servers.base_url()}; `./run stop` ends it.")
    _print_access(layout)
    return 0


def _introduce(layout: Layout, code: int) -> None:
    """What to do with the running service, after the scenario's result."""
    if code != 0:
        failure = StepFailed(
            f"the scenario did not go as specified (exit code {code}); the service stays up",
            hint=f"look at the step above and at {layout.log}; play it again with `./run demo`",
        )
        complain(failure)
    say(f"  {'✓' if code == 0 else '✗'} set-up to the scenario's end: {seconds_since_call():.1f} s")
    _print_access(layout)


def _print_access(layout: Layout) -> None:
    base, demo = Servers(layout).base_url(), read_json(layout.demo)
    rows = {
        "API": f"{base}/v1",
        "API docs": f"{base}/v1/docs",
        "Console": f"{base}/admin/",
        "Operator": f"{demo.get('operator_username')} / {demo.get('operator_password')}",
        "Officer": f"{demo.get('officer_username')} / {demo.get('officer_password')}",
        "Live key": demo.get("live_api_key"),
        "Test key": demo.get("test_api_key"),
        "Logs": layout.log,
        "In a shell": 'eval "$(./run env)"',
    }
    sys.stdout.write("\n" + "".join(f"  {name:<11}{value}\n" for name, value in rows.items()) + "\n")
    sys.stdout.flush()


def _no_more(arguments: list[str]) -> None:
    if arguments:
        raise StepFailed(f"not understood: {' '.join(arguments)}", hint="`./run --help` lists what there is")
