"""A cache of bounded size that drops its oldest entries."""

from collections.abc import Mapping
from threading import Lock
from typing import Generic, TypeVar

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
