"""How workers of pytest-xdist share the suite."""

from itertools import groupby

from xdist.scheduler import LoadScopeScheduling


class PartScheduling(LoadScopeScheduling):
    """Gives a worker one part of the suite at a time, so that what a module's tests share is made once.

    pytest-xdist's own groups are without effect under pytest 9.2: every test is one of its own.
    """

    def schedule(self) -> None:
        # Tests are collected part by part: a file comes a second time with those that commit for real.
        collected = next(iter(self.registered_collections.values()))
        parts = enumerate(ids for _, ids in groupby(collected, file_of))
        self._parts = {nodeid: str(number) for number, ids in parts for nodeid in ids}
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        return self._parts[nodeid]


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]
