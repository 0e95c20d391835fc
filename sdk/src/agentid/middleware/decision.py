"""The question to `GET /v1/gateway/authorize`, and what the answer means; no I/O, no framework."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

PATH = "/v1/gateway/authorize"
PREFIX = "x-service-"
AGENT_ID = f"{PREFIX}agent-id"
CREDENTIALS = frozenset({"authorization", "dpop", f"{PREFIX}cert-serial"})
PASSED_ON = frozenset({"www-authenticate", "dpop-nonce", "cache-control"})
AWAY = "The authorization service does not answer"

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Inbound:
    """A request as it came: `path` decoded, `target` encoded and with its query, names in lower case."""

    method: str
    scheme: str
    host: str
    path: str
    target: str
    headers: Pairs


@dataclass(frozen=True)
class AgentIdentity:
    """Who asks, as the service knows it; `facts` are its headers without `X-Service-`, in lower case."""

    agent_id: str
    facts: Mapping[str, str]


@dataclass(frozen=True)
class Refusal:
    """The answer in place of the application's."""

    status: int
    error: str
    headers: Pairs = ()

    @property
    def body(self) -> bytes:
        return json.dumps({"error": self.error}).encode()

    def all_headers(self) -> list[tuple[str, str]]:
        own = [("content-type", "application/json"), ("content-length", str(len(self.body)))]
        return [*own, *self.headers]


Decision = AgentIdentity | Refusal
Action = str | Callable[[Inbound], str | None] | None


@dataclass(frozen=True)
class Policy:
    """What a protected application asks for.

    `action` is the action a request needs, or a function that says so; None leaves it to the route, as does
    a function that returns None. `excluded` are whole paths that anyone may ask for. `public_url` replaces
    scheme and host where a proxy stands before the application.
    """

    gateway_key: str = field(repr=False)
    route: str
    action: Action = None
    excluded: frozenset[str] = frozenset()
    public_url: str | None = None

    def question(self, inbound: Inbound, *, action: str | None = None) -> list[tuple[str, str]]:
        """The headers that ask whether a request may pass; of the client's, its credentials are passed on."""
        scheme, host = inbound.scheme, inbound.host
        if self.public_url is not None:
            scheme, _, host = self.public_url.rstrip("/").partition("://")
        wanted = action or (self.action(inbound) if callable(self.action) else self.action)
        asked = [
            ("X-Service-Gateway-Key", self.gateway_key),
            ("X-Service-Gateway-Route", self.route),
            ("X-Forwarded-Method", inbound.method),
            ("X-Forwarded-Proto", scheme),
            ("X-Forwarded-Host", host),
            ("X-Forwarded-Uri", inbound.target),
        ]
        asked += [("X-Service-Action", wanted)] if wanted else []
        return asked + [pair for pair in inbound.headers if pair[0] in CREDENTIALS]


def is_identity(name: str) -> bool:
    """Whether a client's header could pass for one of the service's; an underscore counts as a hyphen."""
    return name.lower().replace("_", "-").startswith(PREFIX)


def without_identity(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [pair for pair in headers if not is_identity(pair[0])]


def interpret(*, status: int, headers: Pairs, body: bytes) -> Decision:
    """The service's decision; whatever is neither a yes nor a no is a refusal with 503."""
    lowered = [(name.lower(), value) for name, value in headers]
    if status == 200:
        facts = {name.removeprefix(PREFIX): value for name, value in lowered if name.startswith(PREFIX)}
        return AgentIdentity(facts["agent-id"], facts) if facts.get("agent-id") else away()
    if status in (401, 403):
        kept = [pair for pair in lowered if pair[0] in PASSED_ON]
        return Refusal(status, _error(body) or "Refused", kept)
    return away(dict(lowered).get("retry-after"))


def away(retry_after: str | None = None) -> Refusal:
    """The refusal when there is no decision."""
    return Refusal(503, AWAY, [("retry-after", retry_after or "1")])


def _error(body: bytes) -> str | None:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    error = found.get("error") if isinstance(found, dict) else None
    return error if isinstance(error, str) else None
