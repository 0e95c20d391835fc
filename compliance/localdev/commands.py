"""The commands of `./run`: a function for each."""

import os
import shlex
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from .console import StepFailed, complain, say, step
from .environment import exports
from .install import prepare
from .layout import Layout
from .servers.postgres import postgres_bin
from .servers.processes import run_foreground
from .servers.servers import in_use
from .servers.supervisor import part_commands
from .stack import Stack, compile_scorer, health, play
from .state import read_json

NO_DEMO = "--no-demo"


def run_command(layout: Layout, arguments: list[str]) -> int:
    name, rest = (arguments[0], arguments[1:]) if arguments and arguments[0] != NO_DEMO else ("", arguments)
    command, hint = COMMANDS.get(name), "`./run --help` lists the commands"
    if command is None:
        raise StepFailed(f"there is no `./run {name}`", hint=hint)
    unknown = [one for one in rest if one != NO_DEMO] if command in (run, detach) else rest
    if unknown and command in (run, detach, stop, status, env):
        raise StepFailed(f"not understood: {' '.join(unknown)}", hint=hint)
    return command(Stack(layout), rest)


def run(stack: Stack, arguments: list[str]) -> int:
    """Start, play the demo, and stay until Ctrl-C or `./run stop`; return the demo's exit code."""
    if stack.is_up():
        return detach(stack, arguments)
    code = 130
    try:
        with suppress(KeyboardInterrupt):
            code = detach(stack, arguments)
            say("Ctrl-C stops the service.")
            while stack.is_up():
                time.sleep(0.3)
            say("The service was stopped.")
    finally:
        with step("stop"):
            stack.down()
    return code


def detach(stack: Stack, arguments: list[str]) -> int:
    """Start and play the demo but for `--no-demo`; the service stays up. Return the demo's exit code."""
    code = 0
    if not stack.up():
        say(f"The service is already up at {stack.servers.base_url()}; `./run stop` ends it.")
    elif not arguments and (code := play(stack)) != 0:
        hint = f"look at the step above and at {stack.layout.log}; play it again with `./run demo`"
        message = f"the demo did not go as specified (exit code {code}); the service stays up"
        complain(StepFailed(message, hint=hint))
    base, made = stack.servers.base_url(), read_json(stack.layout.demo)
    rows = {
        "API": f"{base}/v1",
        "API docs": f"{base}/v1/docs",
        "Console": f"{base}/admin/",
        "Operator": f"{made.get('operator_username')} / {made.get('operator_password')}",
        "Officer": f"{made.get('officer_username')} / {made.get('officer_password')}",
        "Tenant": made.get("tenant_id"),
        "Live key": made.get("live_api_key"),
        "Test key": made.get("test_api_key"),
        "Logs": stack.layout.log,
        "In a shell": 'eval "$(./run env)"',
    }
    sys.stdout.write("\n" + "".join(f"  {name:<11}{value}\n" for name, value in rows.items()) + "\n")
    sys.stdout.flush()
    return code


def stop(stack: Stack, arguments: list[str]) -> int:
    with step("stop"):
        ran = stack.down()
    if not ran:
        say("Nothing was running.")
    return 0


def status(stack: Stack, arguments: list[str]) -> int:
    """Print each part with its pid, and the service's own answer; return 0 if all are up, else 1."""
    servers, found = stack.servers, {"supervisor": stack.layout.supervisor.running()}
    pids = read_json(stack.layout.parts).get("pids", {}) if stack.is_up() else {}
    found |= {} if servers.given.databases is not None else {"postgres": servers.postgres.running()}
    found |= {} if servers.given.redis is not None else {"redis": servers.redis.running()}
    found |= {name: pids.get(name) for name in part_commands("", servers.environment())}
    for name, pid in found.items():
        sys.stdout.write(f"✓ {name:<10}  up    pid {pid}\n" if pid else f"✗ {name:<10}  down\n")
    ready = f"{servers.base_url()}/health/ready"
    answer = health(servers.base_url()) if pids else "not asked"
    sys.stdout.write(f"  {ready}: {answer}\n")
    return 0 if all(found.values()) and answer == "200" else 1


def env(stack: Stack, arguments: list[str]) -> int:
    """Print shell exports, and nothing else, on stdout."""
    if not stack.layout.demo.exists():
        raise StepFailed("the service was never started here", hint="`./run --detach` first")
    if not stack.is_up():
        say("The service is not running; these are its last addresses.")
    for name, value in exports(stack.environment(), stack.layout.demo).items():
        sys.stdout.write(f"export {name}={shlex.quote(value)}\n")
    return 0


def demo(stack: Stack, arguments: list[str]) -> int:
    if not stack.is_up():
        raise StepFailed("the service is not running", hint="`./run --detach` first")
    return play(stack, arguments)


def manage(stack: Stack, arguments: list[str]) -> int:
    return execute(stack, [sys.executable, str(stack.layout.root / "manage.py"), *arguments])


def execute(stack: Stack, arguments: list[str]) -> int:
    """Run a program in the caller's folder, with the data servers up and the stack's environment.

    The programs of the virtual environment and of PostgreSQL come first on PATH.
    """
    if not arguments:
        raise StepFailed("nothing to execute", hint="for example `./run exec mypy .`")
    with in_use(stack.servers):
        environment = stack.environment()
        folders = (str(Path(sys.executable).parent), str(postgres_bin()), environment.get("PATH", os.defpath))
        environment["PATH"] = os.pathsep.join(folders)
        return run_foreground(["/usr/bin/env", *arguments], env=environment, cwd=Path.cwd())


def bench(stack: Stack, arguments: list[str]) -> int:
    """Run `python -m bench.NAME`; the first call installs what the service is compared with."""
    if not arguments:
        raise StepFailed("which benchmark?", hint="docs/benchmarks.md names them")
    stack.layout.prepare()
    compile_scorer(stack.layout)
    prepare("bench", venv=stack.layout.bench_venv)
    return execute(stack, [sys.executable, "-m", f"bench.{arguments[0]}", *arguments[1:]])


def attack(stack: Stack, arguments: list[str]) -> int:
    """Run `python -m bench.attack`, which needs the tests' requirements; 0 or, with findings, 6."""
    prepare("test")
    return execute(stack, [sys.executable, "-m", "bench.attack", *arguments])


def release(stack: Stack, arguments: list[str]) -> int:
    """Run `python -m deploy.release`, which needs the tests' requirements and no servers."""
    prepare("test")
    command = [sys.executable, "-m", "deploy.release", *arguments]
    return run_foreground(command, env=os.environ, cwd=stack.layout.root)


COMMANDS: dict[str, Callable[[Stack, list[str]], int]] = {
    "": run,
    "--detach": detach,
    "exec": execute,
    **{each.__name__: each for each in (stop, status, env, demo, manage, bench, attack, release)},
}
