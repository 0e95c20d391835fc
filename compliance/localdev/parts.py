"""The commands of the programs that make up the running service."""

import sys
from collections.abc import Mapping

from .layout import ROOT

MARK = "SERVICE_STACK"
"""The variable by which the parts and their children are recognised; it holds the stack's private folder."""
THREADS = {"worker": 12, "urgent": 4}


def commands(bind: str, environ: Mapping[str, str]) -> dict[str, list[str]]:
    """Return each part's command, in the order of their start; `bind` is where the web server accepts."""
    python = sys.executable
    celery = [python, "-m", "celery", "-A", "compliance.celery"]

    def worker(name: str, queue: str) -> list[str]:
        return [
            *(*celery, "worker", "-Q", queue, "--pool", "threads", "--concurrency", str(THREADS[name])),
            *("--without-gossip", "--without-heartbeat", "--without-mingle", "--loglevel", "INFO"),
        ]

    return {
        "web": [
            *(python, "-m", "gunicorn", "--config", "python:compliance.serving.config"),
            *("--bind", bind, "--workers", environ["WEB_WORKERS"]),
            "compliance.serving.application:application",
        ],
        "worker": worker("worker", "celery"),
        "urgent": worker("urgent", "urgent"),
        "sender": [python, str(ROOT / "manage.py"), "webhook_sender"],
        "signals": [python, str(ROOT / "manage.py"), "signal_sender"],
        "beat": [*celery, "beat", "--pidfile", "", "--loglevel", "INFO"],
    }
