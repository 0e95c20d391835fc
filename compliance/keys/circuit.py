"""A circuit breaker: while a token is away its callers fail at once, and one in a while tries again."""

import threading
import time

from compliance.keys.base import KeyServiceNotConfigured, KeyServiceUnavailable

FIRST_DELAY = 0.5
MAX_DELAY = 5.0
LONGEST_DELAY = 60.0
COST_FACTOR = 20
"""A probe may restart the module, which holds up every token: it gets a twentieth of the time at most."""


class Circuit:
    """Counts failures of one token; the wait between probes doubles from `FIRST_DELAY` to `MAX_DELAY`
    seconds, or grows to what a restart of the module costs, times `COST_FACTOR`.

    The probe is an ordinary call: the first that arrives after the wait.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures = 0
        self._retry_at = 0.0
        self._era = 0
        self._cost = 0.0
        self._refused_reason = ""

    @property
    def is_open(self) -> bool:
        return self._failures > 0 or bool(self._refused_reason)

    def admit(self) -> int:
        """Let a call through, or raise at once; the returned ticket goes to `failed()`."""
        if self._refused_reason:
            raise KeyServiceNotConfigured
        if not self._failures:
            return self._era
        with self._lock:
            now = time.monotonic()
            if self._failures and now < self._retry_at:
                raise KeyServiceUnavailable(retry_after=max(1, round(self._retry_at - now)))
            self._retry_at = now + self._delay()
            return self._era

    def failed(self, ticket: int, *, cost: float = 0.0) -> None:
        """Open, or stay open longer; calls that were admitted together count once. `cost` is what a probe
        takes, in seconds.
        """
        with self._lock:
            if ticket != self._era:
                return
            self._cost = cost
            self._era += 1
            self._failures += 1
            self._retry_at = time.monotonic() + self._delay()

    def succeeded(self) -> None:
        """Close: the token serves."""
        if self._failures:
            with self._lock:
                self._failures = 0
                self._era += 1

    def refuse(self, reason: str) -> None:
        """Stay open until the process restarts: trying a wrong PIN again would lock the token."""
        self._refused_reason = reason

    def _delay(self) -> float:
        usual = min(MAX_DELAY, FIRST_DELAY * 2 ** min(self._failures, 10))
        return float(min(LONGEST_DELAY, max(usual, COST_FACTOR * self._cost)))
