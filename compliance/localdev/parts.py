"""The four programs that make up the running service, and how each is started."""

import sys
from collections.abc import Mapping
from pathlib import Path

MARK = "SERVICE_STACK"
WORKER_THREADS = 16
ROOT = Path(__file__).resolve().parents[2]


def commands(bind: str, environ: Mapping[str, str], *, local: Path) -> dict[str, list[str]]:
    """The command of each part, in the order they are started; `bind` is where the web server accepts."""
    python = sys.executable
    celery = [python, "-m", "celery", "-A", "compliance.celery"]
    return {
        "web": [
            *(python, "-m", "gunicorn", "--config", "python:compliance.serving.config"),
            *("--bind", bind, "--workers", environ["WEB_WORKERS"]),
            "compliance.serving.application:application",
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
