"""Which tests need Citus (`TEST_DATABASE=citus`), and which cannot hold there."""

import os
from typing import Final

import pytest

ON_CITUS: Final = os.environ.get("TEST_DATABASE") == "citus"

on_citus = pytest.mark.skipif(not ON_CITUS, reason="needs Citus: TEST_DATABASE=citus")


def not_on_citus(reason: str) -> pytest.MarkDecorator:
    """Skip a test whose subject is plain PostgreSQL, or that reaches around the service to tables on workers.

    What the service itself cannot do there is no reason.
    """
    return pytest.mark.skipif(ON_CITUS, reason=f"not on Citus: {reason}")
