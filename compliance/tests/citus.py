"""Which tests need Citus (`TEST_DATABASE=citus`), which cannot hold there, and what tests may share."""

import os
from typing import Final, Literal

import pytest

ON_CITUS: Final = os.environ.get("TEST_DATABASE") == "citus"

on_citus = pytest.mark.skipif(not ON_CITUS, reason="needs Citus: TEST_DATABASE=citus")


def not_on_citus(reason: str) -> pytest.MarkDecorator:
    """Skip a test whose subject is plain PostgreSQL, or that reaches around the service to tables on workers.

    What the service itself cannot do there is no reason.
    """
    return pytest.mark.skipif(ON_CITUS, reason=f"not on Citus: {reason}")


def scope_of_worlds(fixture_name: str, config: pytest.Config) -> Literal["module", "function"]:
    """Return the scope of fixtures that write what a module's tests share.

    On Citus each test writes its own: what one transaction did to a shard binds what it may do later.
    """
    return "function" if ON_CITUS else "module"
