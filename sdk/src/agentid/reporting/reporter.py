"""Reports an agent's actions without making it wait: from memory to the spool, from there in batches."""

import asyncio
import atexit
import logging
import os
import random
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from threading import Condition, Lock, Thread, local
from typing import Any, Self

import httpx

from agentid.client.transport import Configuration
from agentid.errors import ConfigurationError
from agentid.reporting.actions import Action
from agentid.reporting.batches import Outcome, Rejected, Verdict, connected, post
from agentid.reporting.encoding import ActionType, Unreportable, decode, encode
from agentid.reporting.spool import MAX_BATCH_EVENTS, Segment, Spool, sender_of

log = logging.getLogger("agentid.reporting")

FIRST_PAUSE, LONGEST_BACKOFF = 0.5, 30.0  # seconds between tries
SHORTEST_PAUSE = 0.1
FULL_PAUSE = 0.2  # seconds until a full spool is tried again
JOIN_SECONDS = 0.5
ADOPTION_INTERVAL = 60.0  # seconds between looks for what dead processes left
EXIT_SECONDS = 5.0
FORK_SECONDS = 1.0  # that a fork waits at most for connections to be open
_living: "weakref.WeakSet[Reporter]" = weakref.WeakSet()
_forking = local()


@dataclass(frozen=True)
class Statistics:
    """Events since the reporter began; `queued` and `spooled` are those that wait now.

    `reported - queued` have been written to the spool.
    """

    reported: int
    queued: int
    spooled: int
    sent: int
    rejected: int
    dropped: int
    unsettled: int


class Reporter:
    """Reports what one agent does. `report()` never waits and never raises; see `docs/reporter.md`.

    `max_queued_bytes` and `max_queued` bound what waits in memory, `max_spool_bytes` what waits on disk.
    `on_rejected` is called in a thread of the reporter for each event that the service does not take.
    Raises: ConfigurationError, and OSError if the spool can't be made or others may write in it.
    """

    _spool: Spool | None

    def __init__(
        self,
        base_url: str,
        api_key: str,
        agent_id: str,
        *,
        spool: Path | str | None = None,
        on_rejected: Callable[[Rejected], None] | None = None,
        linger: float = 0.05,
        timeout: float = 10.0,
        max_queued: int = 10_000,
        max_queued_bytes: int = 16 * 1024 * 1024,
        max_spool_bytes: int = 256 * 1024 * 1024,
        allow_http: bool = False,
    ) -> None:
        if agent_id != Path(agent_id).name or agent_id in ("", "..") or "\0" in agent_id:
            raise ConfigurationError("agent_id: not the id of an agent")
        self._service = Configuration(base_url, api_key, timeout=timeout, allow_http=allow_http)
        self._api_key, self._agent_id = api_key, agent_id
        state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"  # XDG Base Directory
        usual = Path(state).expanduser() / "agentid" / "spool"
        self._folder = (usual if spool is None else Path(spool)) / agent_id
        self._on_rejected, self._linger = on_rejected, linger
        self._max_queued, self._max_queued_bytes = max_queued, max_queued_bytes
        self._max_spool_bytes = max_spool_bytes
        self._begin()
        self._opened()
        # A child forked while a thread imports, or makes a TLS context, would wait for that lock without end:
        # both are done here.
        self._tls = httpx.create_ssl_context()
        connected(self._service, self._tls).close()
        _living.add(self)

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def report(
        self,
        action_type: ActionType,
        details: Mapping[str, Any] | None = None,
        *,
        occurred_at: datetime | None = None,
        session_id: str | None = None,
        chain_id: str | None = None,
    ) -> bool:
        """Take an event; False if it is dropped: the service would refuse it, memory is full, or closed."""
        try:
            line = encode(
                agent_id=self._agent_id,
                action_type=action_type,
                details=details or {},
                occurred_at=occurred_at or datetime.now(UTC),
                session_id=session_id,
                chain_id=chain_id,
            )
        except (Unreportable, AttributeError, TypeError, ValueError, OverflowError) as error:
            log.warning("event dropped: %s", error)
            line = None
        with self._changed:
            full = line is not None and (
                len(self._queue) >= self._max_queued
                or self._queued_bytes + len(line) > self._max_queued_bytes
            )
            if line is None or full or self._is_closing:
                self._counts["dropped"] += 1
                return False
            self._queue.append(line)
            self._queued_bytes += len(line)
            self._counts["reported"] += 1
            if len(self._queue) == 1:
                self._changed.notify_all()
        self._start()
        return True

    def action(self, action_type: ActionType, *, name: str | None = None, arguments: bool = False) -> Action:
        """A decorator of functions, and a context manager, that report outcome and duration."""
        return Action(self.report, action_type, name=name, arguments=arguments)

    def statistics(self) -> Statistics:
        with self._changed:
            found = {**self._counts, "queued": len(self._queue)}
            return Statistics(**{each.name: max(found.get(each.name, 0), 0) for each in fields(Statistics)})

    def flush(self, timeout: float = EXIT_SECONDS) -> bool:
        """Wait until everything reported so far, and all that was spooled, is sent; False if it is not."""
        self._start()
        with self._changed:
            self._hurry += 1
            self._changed.notify_all()
            try:
                return self._changed.wait_for(
                    lambda: not self._queue and self._counts["spooled"] <= 0, timeout
                )
            finally:
                self._hurry -= 1

    def close(self, timeout: float = EXIT_SECONDS) -> bool:
        """Flush and stop; what could not be sent in time stays in the spool. False if something stayed."""
        deadline = time.monotonic() + timeout
        # Nothing is begun here: what an earlier process left waits for the next reporter.
        done = not self._threads or self.flush(timeout)
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()) + JOIN_SECONDS)
        # A thread that hangs in a request keeps the lock until the process ends.
        if self._spool is not None and not any(thread.is_alive() for thread in self._threads):
            self._spool.close()
            self._spool = None
        _living.discard(self)
        return done

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self.close)

    def begin_in_child(self) -> None:
        """Begin empty after a fork: what waits is the parent's to send."""
        if self._spool is not None:
            self._spool.forget()
        self._begin()

    def _begin(self) -> None:
        self._changed, self.connecting = Condition(), Lock()
        self._queue: deque[bytes] = deque()
        self._queued_bytes = self._hurry = 0
        self._counts = Counter[str]()
        self._is_closing = self._is_stuck = False
        self._spool = None
        self._threads: list[Thread] = []

    def _start(self) -> None:
        if self._threads:
            return
        with self._changed:
            if self._threads or self._is_closing:
                return
            self._threads = [
                Thread(target=work, name=f"agentid-{work.__name__}", daemon=True)
                for work in (self._write, self._send)
            ]
        try:
            for thread in self._threads:
                thread.start()
        except RuntimeError as error:  # the interpreter ends, or has no more threads
            log.warning("events wait in memory: %s", error)

    # The writing thread: from memory to the spool.

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._is_closing)
                lines = list(islice(self._queue, MAX_BATCH_EVENTS))
            if not lines:
                return
            try:
                taken, reason = self._opened().append(lines), "it is full"
            except OSError as error:
                taken, reason = 0, str(error)
            if taken < len(lines) and not self._is_stuck:
                log.warning("events wait in memory, the spool can't be written: %s", reason)
            self._is_stuck = taken < len(lines)
            with self._changed:
                self._queued_bytes -= sum(len(self._queue.popleft()) for _ in range(taken))
                self._counts["spooled"] += taken
                self._changed.notify_all()
                if taken < len(lines):
                    if self._is_closing:
                        self._counts["dropped"] += len(self._queue)
                        self._queue.clear()
                        return
                    self._changed.wait(FULL_PAUSE)

    def _opened(self) -> Spool:
        """The spool; a forked child's is made at its first event."""
        if self._spool is None:
            self._spool = Spool(self._folder, max_bytes=self._max_spool_bytes)
        return self._spool

    # The sending thread: from the spool to the service.

    def _send(self) -> None:
        adopted_at, failures = float("-inf"), 0
        with connected(self._service, self._tls) as client:
            while not self._is_closing:
                try:
                    if time.monotonic() - adopted_at > ADOPTION_INTERVAL:
                        adopted_at = time.monotonic()
                        self._count(spooled=self._spool.adopt() if self._spool else 0)
                    spool = self._spool
                    segment = spool.next() if spool is not None else None
                    if spool is None or segment is None:
                        self._await_events()
                        continue
                    verdict = self._try(client, spool, segment)
                except OSError as error:
                    verdict = Verdict(Outcome.REFUSED, f"the spool can't be read: {error}")
                failures = 0 if verdict.outcome in (Outcome.STORED, Outcome.CONFLICT) else failures + 1
                if failures or verdict.again:
                    self._rest(verdict, failures)

    def _await_events(self) -> None:
        """Wait for an event, and then a little for more, unless someone waits for them to be sent."""
        with self._changed:
            self._changed.wait_for(lambda: self._counts["spooled"] > 0 or self._is_closing, ADOPTION_INTERVAL)
            self._changed.wait_for(lambda: self._hurry or self._is_closing, self._linger)

    def _try(self, client: httpx.Client, spool: Spool, segment: Segment) -> Verdict:
        """Send a file once and settle it as the answer says."""
        sender = sender_of(self._api_key)
        if not segment.is_sendable(sender, now=time.time()):
            return self._set_aside(spool, segment, "it may have been stored, too long ago or by another key")
        try:
            lines = segment.lines()
        except FileNotFoundError:  # someone has removed it
            spool.settle(segment)
            self._count(spooled=-segment.count, dropped=segment.count)
            return Verdict(Outcome.STORED)
        is_first_try = segment.tried_at is None
        segment.mark_tried(sender, now=time.time())
        verdict = Verdict(Outcome.STORED)
        if lines:
            verdict = post(client, segment.key, lines, connecting=self.connecting)
        if verdict.outcome is Outcome.CONFLICT:
            return self._set_aside(spool, segment, verdict.reason)
        if verdict.outcome is Outcome.REFUSED and is_first_try:
            segment.mark_untried()
        if verdict.outcome is not Outcome.STORED:
            return verdict
        self._tell(lines, verdict)
        added = spool.settle(segment, again=[lines[place] for place in verdict.again])
        self._count(
            spooled=added - segment.count,
            sent=verdict.sent,
            rejected=len(verdict.rejected),
            dropped=segment.count - len(lines),
        )
        return verdict

    def _set_aside(self, spool: Spool, segment: Segment, reason: str) -> Verdict:
        path = spool.set_aside(segment)
        log.error("%d events were set aside in %s: %s", segment.count, path, reason)
        self._count(spooled=-segment.count, unsettled=segment.count)
        return Verdict(Outcome.CONFLICT)

    def _tell(self, lines: list[bytes], verdict: Verdict) -> None:
        for place, (status, error) in verdict.rejected.items():
            log.warning("event rejected: HTTP %d: %s", status, error)
            if self._on_rejected is not None:
                try:
                    self._on_rejected(Rejected(decode(lines[place]) or {}, status, error))
                except Exception:
                    log.exception("on_rejected failed")

    def _count(self, **changes: int) -> None:
        with self._changed:
            self._counts.update(changes)
            self._changed.notify_all()

    def _rest(self, verdict: Verdict, failures: int) -> None:
        """Wait as the service asks, or longer after each failure; less while someone waits in `flush()`."""
        if failures == 1:
            log.warning("events wait in the spool: %s", verdict.reason)
        backoff = min(LONGEST_BACKOFF, FIRST_PAUSE * 2 ** min(failures, 10)) * random.uniform(0.5, 1.0)  # noqa: S311
        began = time.monotonic()
        with self._changed:
            while not self._is_closing:
                own = min(backoff, FIRST_PAUSE) if self._hurry else backoff
                pause = own if verdict.pause is None else max(verdict.pause, SHORTEST_PAUSE)
                left = began + pause - time.monotonic()
                if left <= 0:
                    return
                self._changed.wait(left)


def _close_all() -> None:
    """Give all reporters together a bounded time at the end of the process."""
    deadline = time.monotonic() + EXIT_SECONDS
    for reporter in list(_living):
        reporter.close(max(0.0, deadline - time.monotonic()))


def _before_fork() -> None:
    """Wait until no thread opens a connection: the C library's and OpenSSL's locks stay locked in a child."""
    deadline = time.monotonic() + FORK_SECONDS
    _forking.held = [
        reporter.connecting
        for reporter in list(_living)
        if reporter.connecting.acquire(timeout=max(0.0, deadline - time.monotonic()))
    ]


def _after_fork() -> None:
    for lock in _forking.held:
        lock.release()


def _begin_in_child() -> None:
    for reporter in list(_living):
        reporter.begin_in_child()


atexit.register(_close_all)
os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_begin_in_child)
