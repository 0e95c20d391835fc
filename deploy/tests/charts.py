"""The chart, and helm to render it with."""

import subprocess

import pytest

from deploy.tests import helm
from deploy.tests.programs import DEPLOY

CHART = DEPLOY / "helm"
EXAMPLE = CHART / "examples/values.yaml"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run helm; skip the test where it is absent."""
    found = helm.program()
    if found is None:
        pytest.skip("helm is not installed: python -m deploy.tests.helm")
    return subprocess.run([found, *arguments], capture_output=True, text=True, check=False)
