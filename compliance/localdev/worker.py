"""A plugin of pytest that gives each worker of pytest-xdist its run's environment, before settings load."""

import json
import os
from typing import Any

import pytest

if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    os.environ.update(json.loads(os.environ["TEST_WORKERS"])[int(worker.removeprefix("gw"))])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Have the groups of `--dist=loadgroup` count, which are the ends of tests' ids.

    pytest-xdist 3.8 writes them where pytest 9.2 no longer looks (pytest-xdist's issue 1386).
    """
    for item in items:
        if marked := getattr(item, "_nodeid", None):
            item._id = type(item.id).parse(marked)
