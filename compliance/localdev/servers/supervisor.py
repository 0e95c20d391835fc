"""The supervisor: one process for each stack that keeps web, worker, senders and beat up.

It does not restart the data servers: they are dependencies, and a drill begins by stopping one.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping

from ..layout import ROOT, Layout
from ..state import locked, write_json
from . import processes
from .processes import send, wait_until
from .servers import Servers

MARK = "SERVICE_STACK"
"""The variable by which the parts and their children are recognised; it holds the stack's private folder."""
POLL_SECONDS = 0.5
STOP_SECONDS = 10.0


def part_commands(bind: str, environ: Mapping[str, str]) -> dict[str, list[str]]:
    """Return each part's command, in the order of their start; `bind` is where the web server accepts."""
    python = sys.executable
    celery = [python, "-m", "celery", "-A", "compliance.celery"]
    worker = [
        *(*celery, "worker", "--pool", "threads"),
        *("--without-gossip", "--without-heartbeat", "--without-mingle", "--loglevel", "INFO"),
    ]
    return {
        "web": [
            *(python, "-m", "gunicorn", "--config", "python:compliance.serving.config"),
            *("--bind", bind, "--workers", environ["WEB_WORKERS"]),
            "compliance.serving.application:application",
        ],
        "worker": [*worker, "-Q", "celery", "--concurrency", "12"],
        "urgent": [*worker, "-Q", "urgent", "--concurrency", "4"],
        "sender": [python, str(ROOT / "manage.py"), "webhook_sender"],
        "signals": [python, str(ROOT / "manage.py"), "signal_sender"],
        "beat": [*celery, "beat", "--pidfile", "", "--loglevel", "INFO"],
    }


def supervise(layout: Layout, arguments: list[str]) -> int:
    """Keep the parts up until SIGTERM or SIGINT, then stop them. The argument is the web server's socket.

    It is held here, too: the port stays ours while the web server is down.
    """
    listener, stopping = socket.socket(fileno=int(arguments[0])), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stopping.set())
    running: dict[str, subprocess.Popen[bytes]] = {}
    with locked(layout.users_lock, shared=True):
        clear_leftovers(layout)
        shutil.rmtree(layout.metrics, ignore_errors=True)
        _tend(layout, listener, running)
        layout.supervisor.pid_file.write_text(str(os.getpid()))
        while not stopping.wait(POLL_SECONDS):
            _tend(layout, listener, running)
        listener.close()
        for process in reversed(running.values()):
            send(process.pid, signal.SIGTERM)
        wait_until(lambda: all(found.poll() is not None for found in running.values()), seconds=STOP_SECONDS)
        clear_leftovers(layout)
    Servers(layout).stop_if_unused()
    return 0


def _tend(layout: Layout, listener: socket.socket, running: dict[str, subprocess.Popen[bytes]]) -> None:
    """Start the parts that are down, and write down which run; what has just ended waits a round."""
    ended = {name: process for name, process in running.items() if process.poll() is not None}
    for name, process in ended.items():
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        os.write(2, f"{moment} {name} (pid {process.pid}) ended with {process.returncode}\n".encode())
        # Its children (web workers) may have outlived it, and would go on accepting.
        send(process.pid, signal.SIGKILL, group=True)
        del running[name]
    wanted = part_commands(f"fd://{listener.fileno()}", os.environ)
    due = [name for name in wanted if name not in running and name not in ended]
    for name in due:
        running[name] = processes.spawn(
            wanted[name],
            log=layout.log / f"{name}.log",
            env={**os.environ, MARK: str(layout.local), "METRICS_DIR": str(layout.metrics)},
            cwd=layout.root,
            pass_fds=[listener.fileno()] if name == "web" else [],
        )
    if due or ended:
        pids = {name: process.pid for name, process in running.items()}
        write_json(layout.parts, {"port": listener.getsockname()[1], "pids": pids})


def clear_leftovers(layout: Layout) -> None:
    """End the parts that a killed supervisor left; they are found by their mark, never by a stale pid."""
    marker = f"{MARK}={layout.local}"
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in processes.marked(marker):
            send(pid, number)
        if wait_until(lambda: not any(processes.marked(marker)), seconds=3):
            return
