"""A shell, over the running service."""

from pathlib import Path

import pytest

from tests.command.test_command import Shell
from tests.served import Service


@pytest.fixture
def shell(service: Service, tmp_path: Path) -> Shell:
    return Shell(tmp_path, service.address)
