"""A circuit breaker: refuse calls to a dependency that has just failed, but for an occasional probe."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic


class CircuitBreaker:
    """Refuse calls to one dependency for a while after each failure; the first call after is a probe.

    The pause doubles with each failure in a row, from `first_pause` to `longest_pause` seconds. `refusal`
    makes the exception to raise from the seconds left; `failures` are what `guarding()` counts.
    """

    def __init__(
        self,
        refusal: Callable[[float], Exception],
        *,
        failures: tuple[type[Exception], ...] = (),
        first_pause: float = 1.0,
        longest_pause: float = 1.0,
    ) -> None:
        self._refusal = refusal
        self._counted = failures
        self._first_pause = first_pause
        self._longest_pause = longest_pause
        self._lock = threading.Lock()
        self._failures = 0
        self._period = 0
        self._pause = 0.0
        self._probe_at = 0.0

    @property
    def is_open(self) -> bool:
        """Return whether the last call failed."""
        return self._failures > 0

    def admit(self) -> int:
        """Let a call through, or raise the refusal; the returned ticket goes to `failed()`."""
        if self._failures:
            with self._lock:
                wait = self._probe_at - monotonic()
                if self._failures and wait > 0:
                    raise self._refusal(wait)
                self._probe_at = monotonic() + self._pause
        return self._period

    def failed(self, ticket: int, *, pause: float = 0.0) -> None:
        """Refuse calls for at least `pause` seconds; calls admitted in one period count as one failure."""
        with self._lock:
            if ticket != self._period:
                return
            usual = min(self._longest_pause, self._first_pause * 2 ** min(self._failures, 10))
            self._pause = max(usual, pause)
            self._period += 1
            self._failures += 1
            self._probe_at = monotonic() + self._pause

    def succeeded(self) -> None:
        """Let all calls through: the dependency serves."""
        if self._failures:
            with self._lock:
                self._failures = 0
                self._period += 1

    @contextmanager
    def guarding(self, *, gone: tuple[type[Exception], ...] = ()) -> Iterator[None]:
        """Run a block as one call; it has failed if it raises one of `gone` (by default, of `failures`)."""
        ticket = self.admit()
        counted = gone or self._counted
        try:
            yield
        except counted:
            self.failed(ticket)
            raise
        self.succeeded()
