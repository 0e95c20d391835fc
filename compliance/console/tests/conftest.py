"""People who sign in often."""

import pytest


@pytest.fixture(autouse=True)
def quick_sign_ins(fast_passwords: None) -> None:
    """Check no password by PBKDF2."""
