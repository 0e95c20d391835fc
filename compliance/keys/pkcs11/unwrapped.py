"""A bounded cache of unwrapped private keys: session objects, destroyed once nobody signs with them."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

from pkcs11 import PKCS11Error

from compliance.keys.base import KeyRef

logger = logging.getLogger(__name__)

MOST_UNWRAPPED: Final = 32
"""Of one token in one process; HSMs of few objects hold other keys besides."""
LIFETIME_SECONDS: Final = 300.0
"""After this time a key is unwrapped anew, which fails if its record was deleted meanwhile."""


@dataclass(eq=False)
class UnwrappedKey:
    """A private key object of a session; `found` is python-pkcs11's object for it.

    Its handle means this key as long as the object exists: a module may give the number to another object
    afterwards. So the object is destroyed only when `users` is 0.
    """

    found: Any
    expires_at: float
    users: int = 0
    is_evicted: bool = False

    @property
    def handle(self) -> int:
        handle: int = self.found.handle
        return handle


class UnwrappedKeys:
    """The least recently used go first. A key is named by its URI and its public key together."""

    def __init__(
        self,
        *,
        size: int = MOST_UNWRAPPED,
        lifetime: float = LIFETIME_SECONDS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._size, self._lifetime, self._clock = size, lifetime, clock
        self._lock = threading.Lock()
        self._keys: OrderedDict[KeyRef, UnwrappedKey] = OrderedDict()

    def __len__(self) -> int:
        return len(self._keys)

    @contextmanager
    def lent(self, key: KeyRef) -> Iterator[UnwrappedKey | None]:
        """Yield the unwrapped key, which is not destroyed inside the block; None if it is not here."""
        with self._lock:
            held = self._keys.get(key)
            if held is not None and held.expires_at <= self._clock():
                held = None
            if held is not None:
                held.users += 1
                self._keys.move_to_end(key)
        try:
            yield held
        finally:
            if held is not None:
                self._give_back(held)

    def add(self, key: KeyRef, found: Any) -> None:
        """Keep a key that was just unwrapped, in place of an older object of it and of the oldest keys."""
        fresh = UnwrappedKey(found, self._clock() + self._lifetime)
        with self._lock:
            gone = [self._keys.pop(key)] if key in self._keys else []
            self._keys[key] = fresh
            now = self._clock()
            expired = [name for name, held in self._keys.items() if held.expires_at <= now]
            gone += [self._keys.pop(name) for name in expired]
            while len(self._keys) > self._size:
                gone.append(self._keys.popitem(last=False)[1])
            for held in gone:
                held.is_evicted = True
            unused = [held for held in gone if not held.users]
        _destroy(unused)

    def drop(self, key: KeyRef) -> None:
        """Forget a key and destroy its object."""
        with self._lock:
            held = self._keys.pop(key, None)
            if held is not None:
                held.is_evicted = True
            unused = [held] if held is not None and not held.users else []
        _destroy(unused)

    def _give_back(self, held: UnwrappedKey) -> None:
        with self._lock:
            held.users -= 1
            is_last = held.is_evicted and not held.users
        if is_last:
            _destroy([held])


def _destroy(keys: list[UnwrappedKey]) -> None:
    for held in keys:
        # Already gone with its session, or with the module's restart.
        with suppress(PKCS11Error):
            held.found.destroy()
