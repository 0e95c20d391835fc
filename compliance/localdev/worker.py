"""A plugin of pytest that gives each worker of pytest-xdist its run's environment, before settings load."""

import json
import os

if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    os.environ.update(json.loads(os.environ["TEST_WORKERS"])[int(worker.removeprefix("gw"))])
