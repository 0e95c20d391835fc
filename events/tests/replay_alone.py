"""`backtest_risk` in a process of its own that dies by SIGKILL: `DATABASE STEP ARGUMENT…`.

It dies after the checkpoint number STEP is stored; 0: never. Steps are of a few events.
"""

import os
import signal
import sys
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")

import django
from django.conf import settings

settings.DATABASES["default"]["NAME"] = sys.argv[1]
django.setup()

from django.core.management import call_command  # noqa: E402

from events.risk.evaluation import checkpoints, stored  # noqa: E402

honest, left = checkpoints._store, int(sys.argv[2])
vars(checkpoints)["STEP_EVENTS"] = vars(stored)["CHUNK"] = vars(stored)["CHUNK_WITH_DETAILS"] = 4


def store_and_die(file: Path, content: bytes) -> None:
    global left  # noqa: PLW0603
    honest(file, content)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)


vars(checkpoints)["_store"] = store_and_die
call_command("backtest_risk", "--from-database", *sys.argv[3:])
