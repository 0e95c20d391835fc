"""The question to `GET /v1/gateway/authorize`, and what the answer means; no I/O, no framework."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

PATH = "/v1/gateway/authorize"
PREFIX = "x-service-"
DECISION = f"{PREFIX}gateway-decision"
CREDENTIALS = frozenset({"authorization", "dpop", f"{PREFIX}cert-serial"})
PASSED_ON = frozenset({"www-authenticate", "dpop-nonce", "cache-control"})
AWAY = "The authorization service does not answer"

_PLAIN = (
    *("agent_id", "tenant_id", "principal", "action", "risk_band"),
    *("environment", "assurance", "credential"),
)
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
    """Who asks, as the service knows it.

    `chain` has type and name of each actor, from the root to the one that asks. `assurance` says whether the
    root was verified or is asserted, `credential` what was presented: serial, bearer or dpop.
    """

    agent_id: str
    tenant_id: str
    principal: str
    chain: tuple[tuple[str, str], ...]
    scope: tuple[str, ...]
    action: str
    risk_band: str
    cert_serial: str | None
    environment: str
    assurance: str
    credential: str

    @classmethod
    def of(cls, told: Mapping[str, str]) -> "AgentIdentity":
        """The identity in the service's headers, named in lower case. Raises: KeyError."""
        plain = {name: unquote(told[PREFIX + name.replace("_", "-")]) for name in _PLAIN}
        actors = (actor.partition("=") for actor in told[f"{PREFIX}chain"].split(",") if actor)
        return cls(
            **plain,
            chain=tuple((kind, unquote(name)) for kind, _, name in actors),
            scope=tuple(map(unquote, told[f"{PREFIX}scope"].split())),
            cert_serial=told.get(f"{PREFIX}cert-serial") or None,
        )


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

    `route` names settings that the service keeps. `action` is the action a request needs, or a function that
    says so; None leaves it to the route, as does a function that returns None. `excluded` are whole paths
    that anyone may ask for. `public_url` replaces scheme and host behind a proxy.
    """

    gateway_key: str = field(repr=False)
    route: str | None = None
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
            ("X-Forwarded-Method", inbound.method),
            ("X-Forwarded-Proto", scheme),
            ("X-Forwarded-Host", host),
            ("X-Forwarded-Uri", inbound.target),
        ]
        asked += [("X-Service-Gateway-Route", self.route)] if self.route else []
        asked += [("X-Service-Action", wanted)] if wanted else []
        return asked + [pair for pair in inbound.headers if pair[0] in CREDENTIALS]


def is_identity(name: str) -> bool:
    """Whether a client's header could pass for one of the service's; an underscore counts as a hyphen."""
    return name.lower().replace("_", "-").startswith(PREFIX)


def interpret(*, status: int, headers: Pairs, body: bytes) -> Decision:
    """The service's decision; whatever is neither a yes nor a no is a refusal with 503."""
    lowered = [(name.lower(), value) for name, value in headers]
    told = dict(lowered)
    if status == 200 and told.get(DECISION) == "allow":
        try:
            return AgentIdentity.of(told)
        except KeyError:
            return away()
    # Without the mark, it is the gateway's own key that is refused.
    if status in (401, 403) and told.get(DECISION) == "deny":
        kept = [pair for pair in lowered if pair[0] in PASSED_ON]
        return Refusal(status, _error(body) or "Refused", kept)
    return away(told.get("retry-after"))


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
