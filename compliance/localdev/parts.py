"""The commands of the five programs that make up the running service."""

import sys
from collections.abc import Mapping

from .layout import ROOT

MARK = "SERVICE_STACK"
"""The variable by which the parts and their children are recognised; it holds the stack's private folder."""
WORKER_THREADS = 16


def commands(bind: str, environ: Mapping[str, str]) -> dict[str, list[str]]:
    """Return each part's command, in the order of their start; `bind` is where the web server accepts."""
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
        "signals": [python, str(ROOT / "manage.py"), "signal_sender"],
        "beat": [*celery, "beat", "--pidfile", "", "--loglevel", "INFO"],
    }
