"""Objects whose threads, locks and connections must not be used in a forked child."""

import os
from typing import Any
from weakref import WeakSet

_registered: WeakSet[Any] = WeakSet()


def register(owner: Any) -> None:
    """Call `owner.reset_after_fork()` in every child forked from this process, while `owner` exists."""
    _registered.add(owner)


def _reset_all() -> None:
    for owner in list(_registered):
        owner.reset_after_fork()


os.register_at_fork(after_in_child=_reset_all)
