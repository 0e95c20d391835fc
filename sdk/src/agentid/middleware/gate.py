"""The decision on a request: the question to `GET /v1/gateway/authorize`, and what its answer means."""

import asyncio
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

import httpx

from agentid.client.transport import Configuration, completed, settled
from agentid.errors import ConfigurationError, NotValid
from agentid.jose import claim, read_object

PATH = "/v1/gateway/authorize"
SERVER_METADATA = "/.well-known/oauth-authorization-server"
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
METADATA_SECONDS = 300.0  # that the authorization server's metadata is kept
ALGORITHMS = "dpop_signing_alg_values_supported"
PREFIX = "x-service-"
DECISION = f"{PREFIX}gateway-decision"
APPROVAL = f"{PREFIX}approval"
SIGNED = frozenset({"signature", "signature-input", "signature-agent", "content-digest"})
CREDENTIALS = frozenset({"authorization", "dpop", f"{PREFIX}cert-serial", APPROVAL}) | SIGNED
PASSED_ON = frozenset({"www-authenticate", "dpop-nonce", "accept-signature", "cache-control", APPROVAL})
AWAY = "The authorization service does not answer"

_RESOURCE = re.compile(r'(https?://[^/?#\s"\\@]+)(/[^?#\s"\\]*)?')
_QUOTED_OR_SCHEME = re.compile(r'"(?:[^"\\]|\\.)*"|[\w-]+ (?=[\w-]+=)')
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
    root was verified or is asserted, `credential` what was presented: serial, bearer, dpop
    or httpsig.
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
class GateAnswer:
    """The answer in place of the application's: a refusal, or the resource's metadata."""

    status: int
    content: Mapping[str, Any]
    headers: Pairs = ()

    @property
    def body(self) -> bytes:
        return json.dumps(self.content).encode()

    def all_headers(self) -> list[tuple[str, str]]:
        own = [("content-type", "application/json"), ("content-length", str(len(self.body)))]
        return [*own, *self.headers]


Decision = AgentIdentity | GateAnswer
Action = str | Callable[[Inbound], str | None] | None


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
        error = "Refused"
        with suppress(NotValid):
            error = claim(read_object(body), "error", str)
        return GateAnswer(status, {"error": error}, kept)
    return away(told.get("retry-after"))


def away(retry_after: str | None = None) -> GateAnswer:
    """The refusal when there is no decision."""
    return GateAnswer(503, {"error": AWAY}, [("retry-after", retry_after or "1")])


def metadata_url(resource: str) -> str:
    """Where a resource's metadata is: the well-known name stands before its path (RFC 9728 §3.1)."""
    found = _RESOURCE.fullmatch(resource)
    if found is None or not (resource.isascii() and resource.isprintable()):
        raise ConfigurationError("resource: a URL without query and fragment")
    path = found[2] if found[2] not in (None, "/") else ""
    return f"{found[1]}{RESOURCE_METADATA}{path}"


def challenge_with(url: str | None, challenges: str) -> str:
    """Challenges of `WWW-Authenticate`, each with `resource_metadata` if there is any (RFC 9728 §5.1)."""
    if url is None:
        return challenges
    return _QUOTED_OR_SCHEME.sub(
        lambda found: found[0] if found[0][0] == '"' else f'{found[0]}resource_metadata="{url}", ', challenges
    )


class Gate:
    """The service's decision on requests to one application; without an answer in time the answer is no.

    `route` names settings that the service keeps. `action` is the action a request needs, or a function that
    says so; None leaves it to the route, as does a function that returns None. `excluded` are whole paths
    that anyone may ask for. `public_url` replaces scheme and host behind a proxy. `resource` is the URL that
    clients know the application by: its metadata is answered, and every 401 says where. `timeout` is in
    seconds; `allow_http` sends the key over plain HTTP to other machines. Raises: ConfigurationError.
    """

    def __init__(
        self,
        base_url: str,
        gateway_key: str,
        *,
        route: str | None = None,
        action: Action = None,
        excluded: tuple[str, ...] = (),
        public_url: str | None = None,
        resource: str | None = None,
        timeout: float = 2.0,
        allow_http: bool = False,
    ) -> None:
        base_url = Configuration(base_url, gateway_key, allow_http=allow_http).base_url
        self._key, self._route, self._action = gateway_key, route, action
        self._excluded, self._public_url = frozenset(excluded), public_url
        self._resource, self._described_at = resource, None if resource is None else metadata_url(resource)
        self._described_path = self._described_at and unquote(urlsplit(self._described_at).path)
        self._server: httpx.Response | None = None
        self._server_until = 0.0
        self.scopes = {action} if isinstance(action, str) else set[str]()
        # Certificates take long to load: once for all clients.
        context = httpx.create_ssl_context()
        self._sync = httpx.Client(base_url=base_url, timeout=timeout, verify=context)
        self._make = partial(httpx.AsyncClient, base_url=base_url, timeout=timeout, verify=context)
        self._of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()

    def is_open(self, path: str) -> bool:
        """Whether anyone may ask for this path."""
        return path in self._excluded

    def question(self, inbound: Inbound, *, action: str | None = None) -> list[tuple[bytes, bytes]]:
        """The headers that ask whether a request may pass; of the client's, its credentials are passed on."""
        scheme, host = inbound.scheme, inbound.host
        if self._public_url is not None:
            scheme, _, host = self._public_url.rstrip("/").partition("://")
        wanted = action or (self._action(inbound) if callable(self._action) else self._action)
        asked = [
            ("X-Service-Gateway-Key", self._key),
            ("X-Forwarded-Method", inbound.method),
            ("X-Forwarded-Proto", scheme),
            ("X-Forwarded-Host", host),
            ("X-Forwarded-Uri", inbound.target),
        ]
        asked += [("X-Service-Gateway-Route", self._route)] if self._route else []
        asked += [("X-Service-Action", wanted)] if wanted else []
        asked += [pair for pair in inbound.headers if pair[0] in CREDENTIALS]
        return [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in asked]

    def decide(self, inbound: Inbound, *, action: str | None = None) -> Decision:
        return completed(self._decided(self._sync.get, inbound, action))

    async def adecide(self, inbound: Inbound, *, action: str | None = None) -> Decision:
        return await self._decided(self._client().get, inbound, action)

    async def _decided(self, get: Callable[..., Any], inbound: Inbound, action: str | None) -> Decision:
        is_metadata = inbound.method == "GET" and inbound.path == self._described_path
        try:
            if not is_metadata:
                answer = await settled(get(PATH, headers=self.question(inbound, action=action)))
                headers = [
                    (name, challenge_with(self._described_at, value) if name == "www-authenticate" else value)
                    for name, value in answer.headers.multi_items()
                ]
                return interpret(status=answer.status_code, headers=headers, body=answer.content)
            if self._server is None or time.monotonic() > self._server_until:
                answer = await settled(get(SERVER_METADATA))
                if answer.status_code != 200:
                    return away(answer.headers.get("retry-after"))
                claim(read_object(answer.content), "issuer", str)
                self._server, self._server_until = answer, time.monotonic() + METADATA_SECONDS
            return self._metadata(self._server)
        except (httpx.HTTPError, NotValid):
            return away()

    def _metadata(self, answer: httpx.Response) -> GateAnswer:
        """The protected resource's metadata (RFC 9728 §2), of the authorization server's (RFC 8414)."""
        server = read_object(answer.content)
        content = {
            "resource": self._resource,
            "authorization_servers": [server["issuer"]],
            "bearer_methods_supported": ["header"],
            ALGORITHMS: server.get(ALGORITHMS),
            "scopes_supported": sorted(self.scopes),
        }
        kept = [pair for pair in answer.headers.multi_items() if pair[0] == "cache-control"]
        return GateAnswer(200, {name: value for name, value in content.items() if value}, kept)

    def close(self) -> None:
        """Close the connections of threads."""
        self._sync.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop; a later decision opens others."""
        client = self._of_loop.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def _client(self) -> httpx.AsyncClient:
        """The running loop's own: connections can't be shared between loops."""
        loop = asyncio.get_running_loop()
        if loop not in self._of_loop:
            self._of_loop[loop] = self._make()
        return self._of_loop[loop]
