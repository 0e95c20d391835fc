"""Caches of bounded size that drop their oldest entries."""

from collections.abc import Iterable, Mapping
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

from compliance.core import environments
from compliance.core.environments import Environment

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """A mapping of at most `limit` entries, safe between threads; writing an entry makes it the newest."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: dict[Key, Value] = {}
        self._lock = Lock()

    def get(self, key: Key) -> Value | None:
        return self._entries.get(key)

    def put(self, key: Key, value: Value) -> None:
        self.put_all({key: value})

    def put_all(self, entries: Mapping[Key, Value]) -> None:
        with self._lock:
            for key, value in entries.items():
                self._entries.pop(key, None)
                self._entries[key] = value
            while len(self._entries) > self._limit:
                del self._entries[next(iter(self._entries))]

    def drop(self, key: Key) -> None:
        with self._lock:
            self._entries.pop(key, None)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()


class RecentlyRead(Generic[Key, Value]):
    """Values of each environment for `SECONDS` after they were read: every process sees a change by then."""

    SECONDS = 0.8

    def __init__(self, limit: int) -> None:
        self._kept: BoundedCache[tuple[Environment, Key], tuple[float, Value]] = BoundedCache(limit)

    def of(self, keys: Iterable[Key]) -> dict[Key, Value]:
        environment, oldest = environments.current(), monotonic() - self.SECONDS
        found = {key: self._kept.get((environment, key)) for key in keys}
        return {key: kept[1] for key, kept in found.items() if kept and kept[0] > oldest}

    def keep(self, values: Mapping[Key, Value], *, read_at: float) -> None:
        """Keep values that were asked for at `read_at`, by the monotonic clock."""
        self._kept.put_all({(environments.current(), key): (read_at, values[key]) for key in values})

    def forget(self, key: Key) -> None:
        """Drop the value in this process once the transaction is committed."""
        environment = environments.current()
        environments.on_commit(lambda: self._kept.drop((environment, key)))
