"""What was revoked, followed by polling signals, so that an offline verifier refuses what they end."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Self

from agentid import jose
from agentid.client.service import Client
from agentid.errors import AgentIdError, NotValid, Reason
from agentid.verify.key_sets import KeyAges
from agentid.verify.signals import KIND, SignalKind, SignalRules, VerifiedSignal, verify_signal
from agentid.verify.tokens import VerifiedToken

ENABLED: Final = "enabled"
REST_SECONDS: Final = 0.2
LONGEST_REST: Final = 5.0
BEGINS: Final = frozenset({"create", "update"})
"""Changes of a certificate after which it counts; any other ends it."""
KEY_PATIENCE_SECONDS: Final = 60.0  # that a signal waits for its key; new ones are asked for every 30
ERROR_CODES: Final = {
    Reason.UNKNOWN_KEY: "invalid_key",
    Reason.INVALID_SIGNATURE: "invalid_key",
    Reason.INVALID_ISSUER: "invalid_issuer",
    Reason.WRONG_AUDIENCE: "invalid_audience",
}
"""The code by which a signal is refused (RFC 8935 §2.4). For every other reason it is `invalid_request`."""


class Revocations:
    """What signals told, in bounded memory; no I/O.

    Revoked tokens are kept for `token_seconds` (the longest life of a token), agents and certificates for
    `certificate_seconds`. More than `most` of all is remembered as `is_full`: then nothing is known for sure.
    """

    def __init__(
        self, *, most: int = 100_000, token_seconds: int = 86_400, certificate_seconds: int = 400 * 86_400
    ) -> None:
        self.is_full = False
        self._most = most
        self._token_seconds, self._certificate_seconds = token_seconds, certificate_seconds
        self._ended: dict[tuple[str, str], float] = {}  # by "token", "serial" or "key" and its name
        self._agents: dict[str, tuple[float, bool]] = {}

    def apply(self, signal: VerifiedSignal) -> None:
        """Remember a signal; in the order they came. A repeated one does no harm.

        A repeated signal from before a revocation does not undo it.
        """
        at = signal.happened_at.timestamp()
        if signal.event == SignalKind.SESSION_REVOKED and signal.token_id:
            self._ended["token", signal.token_id] = at
        elif signal.event == SignalKind.SESSION_REVOKED and signal.agent_id:
            until, _ = self._agents.get(signal.agent_id, (at, True))
            self._agents[signal.agent_id] = (max(at, until), False)
        elif signal.certificate_serial:
            serial = "serial", _plain_serial(signal.certificate_serial)
            until = self._ended.get(serial, at)
            if signal.change not in BEGINS:
                self._ended[serial] = max(at, until)
            elif at >= until:
                self._ended.pop(serial, None)
                stopped_at, _ = self._agents.get(signal.agent_id or "", (None, False))
                if signal.agent_id and stopped_at is not None and at >= stopped_at:
                    self._agents[signal.agent_id] = (stopped_at, True)
        elif signal.key_id and signal.change == "revoke":
            self._ended["key", signal.key_id] = at
        if self._count() > self._most:
            self._forget(time.time())
            self.is_full = self._count() > self._most

    def has_token(self, token: VerifiedToken) -> bool:
        """Whether the token has ended: itself, one it came of, its agents or their certificates."""
        behind = token.claims.get("via", [])
        via = [each for each in behind if isinstance(each, dict)] if isinstance(behind, list) else []
        ids = [token.token_id, *(each.get("jti") for each in via)]
        agents = [token.agent_id, *(each.get("agent_id") for each in via)]
        serials = [token.certificate_serial, *(each.get("cert_serial") for each in via)]
        issued = int(token.issued_at.timestamp())
        return (
            any(("token", str(each)) in self._ended for each in ids)
            or any(self.has_serial(str(each)) for each in serials if each is not None)
            or any(self._agents[str(each)][0] >= issued for each in agents if str(each) in self._agents)
        )

    def has_serial(self, serial: str) -> bool:
        """Whether the certificate was revoked; a serial in hex, in any case, with colons or without."""
        return ("serial", _plain_serial(serial)) in self._ended

    def has_agent(self, agent_id: str) -> bool:
        """Whether the agent was stopped and got no certificate, or its own back, since."""
        return not self._agents.get(agent_id.lower(), (0.0, True))[1]

    def has_key(self, key_id: str) -> bool:
        return ("key", key_id) in self._ended

    def _count(self) -> int:
        return len(self._ended) + len(self._agents)

    def _forget(self, now: float) -> None:
        others = now - self._certificate_seconds
        since = {"token": now - self._token_seconds}
        self._ended = {key: at for key, at in self._ended.items() if at > since.get(key[0], others)}
        self._agents = {each: kept for each, kept in self._agents.items() if kept[0] > others}


def _plain_serial(text: str) -> str:
    """One text for each serial, however it is written in hex."""
    return text.replace(":", "").strip().lower().lstrip("0")


class RevocationFeed:
    """Follows a polled stream in a thread of its own: polls, verifies, remembers, acknowledges.

    It knows what happened since the stream was made; CRL and status list tell of the time before. While it
    cannot know (`silence_seconds` without an answer, a stream that was not enabled, full memory) its answer
    is NotValid (status_unknown). A signal that does not verify is refused (`setErrs`, RFC 8936 §2.6), so the
    service does not send it again, and from then on every answer is status_unknown. Read CRL and status list,
    and make a new feed.
    Use it as a context manager.
    """

    def __init__(
        self,
        client: Client,
        stream_id: str,
        *,
        rules: SignalRules,
        environment: str = "live",
        silence_seconds: float = 30.0,
        revocations: Revocations | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.last_error: AgentIdError | None = None
        self._client, self._stream_id, self._rules = client, stream_id, rules
        self._environment, self._silence_seconds = environment, silence_seconds
        self._known, self._clock = revocations or Revocations(), clock
        self._heard_at = float("-inf")
        self._has_gap = False
        self._ages = KeyAges()
        self._taken: list[str] = []
        self._refused: dict[str, dict[str, str]] = {}
        self._keyless: dict[str, float] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="agentid-revocations", daemon=True)

    @property
    def is_current(self) -> bool:
        """Whether the feed knows all that was told lately."""
        is_heard = self._clock() - self._heard_at <= self._silence_seconds
        return is_heard and not self._has_gap and not self._known.is_full

    def is_revoked(
        self,
        token: VerifiedToken | None = None,
        *,
        serial: str | None = None,
        agent_id: str | None = None,
        key_id: str | None = None,
    ) -> bool:
        """Whether any of these was revoked. Raises: NotValid (status_unknown) where the feed cannot tell."""
        with self._lock:
            found = (
                (token is not None and self._known.has_token(token))
                or (serial is not None and self._known.has_serial(serial))
                or (agent_id is not None and self._known.has_agent(agent_id))
                or (key_id is not None and self._known.has_key(key_id))
            )
        if not found and not self.is_current:
            raise NotValid(Reason.STATUS_UNKNOWN, "the feed of revocations is not current")
        return found

    def follow_once(self) -> int:
        """Poll once, and answer for what came before; how many signals came.

        Raises: AgentIdError, NotValid for the first signal that does not verify.
        """
        polled = self._client.signals.poll(
            self._stream_id, ack=self._taken or None, set_errs=self._refused or None
        )
        self._taken, self._refused = [], {}
        problem: NotValid | None = None
        for jti, token in polled.sets.items():
            error = self._received(jti, token)
            problem = problem or error
            if error is not None and jti not in self._refused:
                # Those behind one that waits for its key come again: a later change must not be undone by it.
                break
        if problem is not None:
            raise problem
        if not polled.sets and self._client.signals.status(self._stream_id).status != ENABLED:
            # What a disabled stream was not told never comes.
            self._has_gap = True
        self._heard_at = self._clock()
        return len(polled.sets)

    def _received(self, jti: str, token: str) -> NotValid | None:
        """Take a signal, refuse it, or let it wait for its key; what is wrong with it."""
        try:
            signal = self._verified(jti, token)
        except NotValid as error:
            began = self._keyless.setdefault(jti, self._clock())
            if error.reason is not Reason.UNKNOWN_KEY or self._clock() - began > KEY_PATIENCE_SECONDS:
                code = ERROR_CODES.get(error.reason, "invalid_request")
                self._refused[jti] = {"err": code, "description": str(error)}
                self._has_gap = True
                self._keyless.pop(jti)
            return error
        self._keyless.pop(jti, None)
        with self._lock:
            self._known.apply(signal)
        self._taken.append(jti)
        return None

    def _verified(self, jti: str, token: str) -> VerifiedSignal:
        if self._ages.must_fetch(jose.key_id(token, kind=KIND)):
            self._ages.take(self._client.delegation.jwks(environment=self._environment))
        keys = {kid: key for kid, key in self._ages.keys.items() if not self._known.has_key(kid)}
        signal = verify_signal(token, keys=keys, rules=self._rules, now=datetime.now(UTC))
        if signal.id != jti:
            raise NotValid(Reason.MALFORMED, "sent under another jti")
        return signal

    def _follow(self) -> None:
        rest = REST_SECONDS
        while not self._stopping.is_set():
            began = self._clock()
            try:
                count = self.follow_once()
            except AgentIdError as error:
                self.last_error = error
                self._stopping.wait(rest)
                rest = min(rest * 2, LONGEST_REST)
                continue
            rest = REST_SECONDS
            if not count and self._clock() - began < REST_SECONDS:
                self._stopping.wait(REST_SECONDS)  # the service would not let the poll wait

    def close(self) -> None:
        """Follow no more; a poll that waits ends on its own."""
        self._stopping.set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
        self._thread.join(LONGEST_REST + 1)
