import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.tests.containers import Engine, build_service, remove, start_engine, unmount_below


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """Podman with the image `service:drill`, built once for all tests that run it."""
    folder = Path(tempfile.mkdtemp(prefix="container-"))
    try:
        started = start_engine(folder)
        try:
            build_service(started)
            yield started
        finally:
            remove(started)
    finally:
        # What is mounted below would be emptied, not unmounted.
        unmount_below(folder)
        shutil.rmtree(folder)
