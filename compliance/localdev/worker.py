"""A plugin of pytest that gives each worker of pytest-xdist its run's environment, before settings load."""

import os
from pathlib import Path

from .state import read_json

if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    os.environ.update(read_json(Path(os.environ["TEST_WORKERS"]) / f"{worker}.json"))
