"""One POST to a receiver, and what came of it."""

import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from http.client import IncompleteRead
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool
from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError

from webhooks import transport
from webhooks.addresses import Target, UrlPolicy, UrlRefused, check_url
from webhooks.transport import Deadline, Resolver, SendingFailed

MAX_BODY_BYTES = 4096
MAX_ERROR_LENGTH = 255


@dataclass(frozen=True)
class Rules:
    """How to send: what is allowed, for how long, whose certificates count (None: the public roots)."""

    policy: UrlPolicy
    timeout_seconds: float
    ca_file: str | None = None
    resolver: Resolver = transport.resolve


@dataclass(frozen=True)
class Outcome:
    """What came of a try; `response_body` is its first 4 KB, `error` says why there is no complete answer."""

    duration: timedelta
    response_status: int | None = None
    response_body: str | None = None
    error: str | None = None

    @property
    def succeeded(self) -> bool:
        """A complete answer with a 2xx status; a redirect is a failure like any other."""
        return self.error is None and self.response_status is not None and 200 <= self.response_status < 300


def post(url: str, *, body: bytes, headers: Mapping[str, str], rules: Rules) -> Outcome:
    """Send `body` once, without redirects, proxies or credentials from the process's environment.

    Everything from the name's resolution to the last byte read happens within `rules.timeout_seconds`.
    Raises nothing for what a receiver or network does: that is an `Outcome`.
    """
    started = time.monotonic()
    status: int | None = None
    text: str | None = None
    error: str | None = None
    try:
        response = _open(url, body, headers, rules)
        status = response.status_code
        text = _readable(_first_bytes(response))
    except (SendingFailed, UrlRefused) as failure:
        error = str(failure)
    except (requests.RequestException, HTTPError, OSError) as failure:
        error = _explain(failure)
    duration = timedelta(seconds=time.monotonic() - started)
    return Outcome(duration, status, text, error[:MAX_ERROR_LENGTH] if error else None)


def _open(url: str, body: bytes, headers: Mapping[str, str], rules: Rules) -> requests.Response:
    """The answer with its body unread.

    Straight through the adapter: a `Session` would read a redirect's whole body to prepare the next hop.
    """
    deadline = Deadline(rules.timeout_seconds)
    target = check_url(url, rules.policy)
    request = requests.Request("POST", url, headers=dict(headers), data=body).prepare()
    adapter = _Adapter(target, lambda: _connection_to(target, rules, deadline))
    return adapter.send(request, stream=True, timeout=rules.timeout_seconds)


def _connection_to(target: Target, rules: Rules, deadline: Deadline) -> socket.socket:
    raw = transport.dial(target, policy=rules.policy, deadline=deadline, resolver=rules.resolver)
    if target.scheme == "http":
        return raw
    try:
        return transport.secure(raw, target.host, deadline=deadline, ca_file=rules.ca_file)
    except SendingFailed:
        raw.close()
        raise


class _Connection(HTTPConnection):
    """An HTTP connection over a socket that `dial` opens."""

    def __init__(
        self, *args: Any, dial: Callable[[], socket.socket], default_port: int, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.default_port = default_port  # type: ignore[misc]  # decides whether Host names the port
        self._dial = dial

    def connect(self) -> None:
        self.sock = self._dial()


class _Adapter(HTTPAdapter):
    """requests over one connection of ours: to `target`, used once."""

    def __init__(self, target: Target, dial: Callable[[], socket.socket]) -> None:
        super().__init__(pool_connections=1, pool_maxsize=1)
        self._target = target
        self._dial = dial

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> HTTPConnectionPool:
        default_port = 443 if self._target.scheme == "https" else 80
        pool = HTTPConnectionPool(
            self._target.host, self._target.port, dial=self._dial, default_port=default_port
        )
        pool.ConnectionCls = _Connection
        return pool

    def cert_verify(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: the socket comes verified."""


def _first_bytes(response: requests.Response) -> bytes:
    """At most 4 KB of the body, and no more of it read; closes the connection.

    Only the read that finds the end tells whether the body is as long as it said: so on to an empty one.
    """
    found = b""
    try:
        while len(found) < MAX_BODY_BYTES:
            piece = response.raw.read(MAX_BODY_BYTES - len(found), decode_content=False)
            if not piece:
                break
            found += piece
    finally:
        response.raw.close()
    return found


def _readable(body: bytes) -> str:
    """Text that PostgreSQL can keep, at most 4 KB in UTF-8."""
    text = body.decode("utf-8", errors="replace").replace("\x00", "\ufffd")
    return text.encode()[:MAX_BODY_BYTES].decode("utf-8", errors="ignore")


def _explain(failure: BaseException) -> str:
    """A library's error in words for the webhook's owner."""
    chain = list(_causes(failure))
    if any(isinstance(cause, ConnectionResetError | BrokenPipeError | IncompleteRead) for cause in chain):
        return "Connection closed before a complete answer came"
    if any(isinstance(cause, requests.exceptions.InvalidURL) for cause in chain):
        return "The URL can't be requested"
    return f"No valid HTTP answer: {type(chain[-1]).__name__}"


def _causes(failure: BaseException) -> "list[BaseException]":
    found = [failure]
    while (inner := _inner(found[-1])) is not None and inner not in found:
        found.append(inner)
    return found


def _inner(failure: BaseException) -> BaseException | None:
    carried = [argument for argument in failure.args if isinstance(argument, BaseException)]
    return failure.__cause__ or failure.__context__ or (carried[-1] if carried else None)
