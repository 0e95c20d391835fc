"""The four programs that make up the running service, and how each is started."""

import sys
from collections.abc import Mapping
from pathlib import Path

from .ports import HOST

MARK = "SERVICE_STACK"
# Connections each web worker holds, idle keep-alive ones included, before others wait in the kernel's queue;
# below the 1,024 open files that a process may usually have.
BACKPRESSURE = 512
WORKER_THREADS = 16
ROOT = Path(__file__).resolve().parents[2]


def commands(port: int, environ: Mapping[str, str], *, local: Path) -> dict[str, list[str]]:
    """The command of each part, in the order they are started."""
    python = sys.executable
    celery = [python, "-m", "celery", "-A", "compliance.celery"]
    return {
        "web": [
            *(python, "-m", "granian", "--interface", "rsgi", "compliance.server:application"),
            *("--host", HOST, "--port", str(port), "--no-ws", "--http", "1"),
            *("--loop", "uvloop", "--runtime-mode", "st"),
            *("--workers", environ["WEB_WORKERS"], "--backpressure", str(BACKPRESSURE)),
            *("--respawn-failed-workers", "--respawn-interval", "0.5", "--workers-kill-timeout", "5"),
        ],
        "worker": [
            *(*celery, "worker", "--pool", "threads", "--concurrency", str(WORKER_THREADS)),
            *("--without-gossip", "--without-mingle", "--loglevel", "INFO"),
        ],
        "sender": [python, str(ROOT / "manage.py"), "webhook_sender"],
        "beat": [
            *(*celery, "beat", "--schedule", str(local / "run/beat-schedule"), "--pidfile", ""),
            *("--loglevel", "INFO"),
        ],
    }


def mark(local: Path) -> str:
    """What each part and its children carry in their environment, so that they can be told from others'."""
    return f"{MARK}={local}"
