"""Every route of the API from Django's URL table, and a valid request for each of its methods."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from django.urls import URLPattern, URLResolver, get_resolver

from bench.attack.wire import Call, call
from bench.attack.world import BLUEPRINT, LOOPBACK_HOOK, REVIEW, STOP, Holdings
from compliance.api.answers import service_header
from events.otlp.views import EXPORT

# Parameters that name a place in the tree.
OF_TREE = frozenset({"level", "path"})
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
OCSP_TYPE = "application/ocsp-request"
FORM_TYPE = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Route:
    """A path of the API: `actions` by method, `scopes` by action; none for what anyone may ask.

    `is_plain`: a view of Django's, which declares no methods.
    """

    pattern: str
    actions: Mapping[str, str]
    is_public: bool
    is_plain: bool = False
    scopes: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def path(self) -> str:
        """As the description spells it."""
        return "/" + _PARAMETER.sub(r"{\1}", self.pattern)

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        return tuple(_PARAMETER.findall(self.pattern))

    def names_object(self, method: str) -> bool:
        """Whether something of a tenant is asked for, in the path or in the body."""
        if self.is_public:
            return False
        if self.decides:
            return True
        names_one = bool(self.parameters) and not self.is_of_tree
        return names_one or (method == "POST" and self.pattern in IN_BODY)

    @property
    def is_oauth(self) -> bool:
        """Whether it takes forms, and refuses as RFC 6749 has it."""
        return self.pattern.startswith("oauth/")

    @property
    def decides(self) -> bool:
        """Whether it answers a gateway, about the credential of a client in a header."""
        return self.pattern.startswith("v1/gateway/authorize")

    @property
    def is_of_tree(self) -> bool:
        """Whether it serves a part of the tree of audit entries that an environment's tenants share."""
        return bool(OF_TREE.intersection(self.parameters))

    def address(self, holdings: Holdings) -> str:
        """The path with the ids of what `holdings` has."""
        return _PARAMETER.sub(lambda found: _value(holdings, self.pattern, found[1]), "/" + self.pattern)

    def scope_of(self, method: str) -> str | None:
        """The scope that a method needs; None where anyone may, or the path has no such method."""
        action = self.actions.get("GET" if method == "HEAD" else method)
        return self.scopes.get(action) if action else None


def api_routes() -> list[Route]:
    """All but the console."""
    return [route for pattern, prefix in _walk(get_resolver(), "") if (route := _route(pattern, prefix))]


def _walk(resolver: URLResolver, prefix: str) -> Iterator[tuple[URLPattern, str]]:
    for entry in resolver.url_patterns:
        path = prefix + str(entry.pattern)
        if path.startswith("admin/"):
            continue
        if isinstance(entry, URLResolver):
            yield from _walk(entry, path)
        else:
            yield entry, path


def _route(entry: URLPattern, path: str) -> Route | None:
    view = getattr(entry.callback, "cls", None)
    actions = {method.upper(): name for method, name in getattr(entry.callback, "actions", {}).items()}
    if not actions:
        return Route(path, {"GET": "get"}, is_public=True, is_plain=True)
    scopes = {name: str(scope.value) for name, scope in getattr(view, "required_scopes", {}).items()}
    return Route(path, actions, is_public=not getattr(view, "permission_classes", ()), scopes=scopes)


def _value(holdings: Holdings, pattern: str, name: str) -> str:
    if name == "serial" and not pattern.startswith("v1/verify"):
        return holdings.authority_serial
    return holdings.value(name)


# Routes whose object stands in the body.
IN_BODY = frozenset(
    {
        *("v1/events", "v1/events/batch", "v1/reports", "v1/ssf/status", "v1/ssf/verify"),
        *("v1/approvals", "v1/otlp/names"),
    }
)


def _agent(_: Holdings) -> Any:
    return {
        "name": "fuzzed",
        "model": "m",
        "version": "1",
        "model_hash": "sha256:00",
        "description": "d",
        "metadata": {"permitted_actions": ["read", "pay"], "note": "n"},
        "agent_card": {
            "url": "https://agents.example/a", "protocol_binding": "GRPC", "streaming": True,
            "input_modes": ["text/plain"], "output_modes": ["text/plain"], "token_schemes": ["dpop"],
            "provider_url": "https://example.com", "documentation_url": "https://example.com/docs",
        },
        "financial_scope": {
            "max_single_trade_usd": 10, "daily_limit_usd": 50.5, "permitted_instruments": ["A"],
            "permitted_venues": ["v"], "leverage_permitted": True, "max_leverage_ratio": 2,
        },
    }  # fmt: skip


def _event(holdings: Holdings) -> Any:
    return {
        "agentId": holdings.agent, "actionType": "data_access", "sessionId": "s-1", "chainId": holdings.agent,
        "occurredAt": "2026-01-02T03:04:05Z",
        "details": {"tool": "read", "amount_usd": 1.5, "tags": ["a", {"b": None}]},
    }  # fmt: skip


def _delegation(_: Holdings) -> Any:
    chain = [{"sub": "user:alice", "type": "human"}, {"sub": "agent:a", "type": "agent"}]
    return {"chain": chain, "scope": "read", "audience": "https://api.example", "ttl_seconds": 600}


def _exchange(holdings: Holdings) -> bytes:
    types = "urn:ietf:params:oauth:token-type:"
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token": holdings.token,
        "subject_token_type": f"{types}access_token", "actor_token": holdings.agent,
        "actor_token_type": f"urn:{holdings.did.split(':')[1]}:params:oauth:token-type:agent",
        "scope": "read",
    }  # fmt: skip
    return urlencode(form).encode()


def _presented(holdings: Holdings) -> bytes:
    return urlencode({"token": holdings.token}).encode()


def _trust(_: Holdings) -> Any:
    return {
        "issuer": f"https://{uuid4()}.example.com", "audiences": ["app"], "subject_claim": "email",
        "required_claims": {"groups": ["traders"]},
    }  # fmt: skip


def _evaluation(holdings: Holdings) -> Any:
    return {
        "subject": {"type": "agent", "id": holdings.agent, "properties": {"a": 1}},
        "action": {"name": "pay", "properties": {"method": "POST"}},
        "resource": {"type": "invoice", "id": "7", "properties": {"b": 2}},
        "context": {"action_type": "api_call", "details": {"amount": 7}, "token": holdings.token},
    }


def _reason(_: Holdings) -> Any:
    return {"reason": "superseded: by an attack"}


BODIES: Mapping[str, Callable[[Holdings], Any]] = {
    "POST v1/agents": _agent,
    "PATCH v1/agents/<str:agent_id>": lambda _: {
        "description": "other",
        "metadata": {"permitted_actions": ["read"]},
    },
    "POST v1/agents/<str:agent_id>/suspend": _reason,
    "POST v1/agents/<str:agent_id>/reinstate": _reason,
    "POST v1/agents/<str:agent_id>/retire": _reason,
    "POST v1/agents/<str:agent_id>/certify": lambda _: None,
    "POST v1/agents/<str:agent_id>/renew": lambda _: None,
    "POST v1/agents/<str:agent_id>/sign": lambda _: {
        "payload": {"a": [1, 2.5, "x", None]},
        "format": "jws",
        "audience": "https://api.example",
    },
    "POST v1/agents/<str:agent_id>/delegation": _delegation,
    # Without a proof by the key nothing is registered.
    "POST v1/agents/<str:agent_id>/keys": lambda _: {
        "jwk": {"kty": "OKP", "crv": "Ed25519", "x": "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"}
    },
    "POST v1/agents/<str:agent_id>/keys/<str:key_id>/revoke": _reason,
    "POST v1/certificates/<str:certificate_id>/revoke": _reason,
    "POST v1/certificates/<str:certificate_id>/renew": lambda _: None,
    "POST v1/verify/message": lambda holdings: {
        "payload": {"a": 1},
        "signature": holdings.signature,
        "certificate_serial": holdings.serial,
    },
    "POST v1/ocsp": lambda holdings: holdings.ocsp_request,
    "POST v1/ocsp/": lambda holdings: holdings.ocsp_request,
    "POST v1/events": _event,
    "POST v1/events/batch": lambda holdings: {"events": [_event(holdings), _event(holdings)]},
    "POST v1/events/<str:event_id>/review": lambda _: {"verdict": "dismissed", "note": "n"},
    "POST v1/otlp/v1/traces": lambda _: EXPORT,
    "POST v1/otlp/names": lambda holdings: {
        "source": "service.name",
        "name": uuid4().hex,
        "agent_id": holdings.agent,
    },
    "POST v1/delegation/verify": lambda holdings: {"token": holdings.token, "audience": "a"},
    "POST v1/delegations/<str:token_id>/revoke": _reason,
    "POST oauth/token": _exchange,
    "POST oauth/introspect": _presented,
    # Its own token is still needed.
    "POST oauth/revoke": lambda _: b"token=unknown",
    "POST v1/trusted-issuers": _trust,
    "PATCH v1/trusted-issuers/<str:issuer_id>": lambda _: {"audiences": ["app", "desk"], "active": False},
    # Loopback, and an event that no attack causes.
    "POST v1/webhooks": lambda _: {
        "url": LOOPBACK_HOOK,
        "events": ["certificate.expired"],
        "description": "d",
    },
    "PATCH v1/webhooks/<str:webhook_id>": lambda _: {"active": False, "description": "e"},
    "POST v1/webhooks/<str:webhook_id>/test": lambda _: None,
    "POST v1/webhooks/<str:webhook_id>/rotate-secret": lambda _: {"overlap_seconds": 0},
    "POST v1/webhooks/<str:webhook_id>/recover": lambda _: {"since": "2026-01-01T00:00:00Z"},
    "POST v1/webhooks/<str:webhook_id>/deliveries/<str:delivery_id>/redeliver": lambda _: None,
    "POST v1/ssf/streams": lambda _: {"description": "d", "events_requested": []},
    "PATCH v1/ssf/streams": lambda holdings: {"stream_id": holdings.stream, "description": "e"},
    "POST v1/ssf/streams/<str:stream_id>/poll": lambda _: {"returnImmediately": True, "ack": ["x"]},
    "POST v1/ssf/status": lambda holdings: {"stream_id": holdings.stream, "status": "enabled"},
    "POST v1/ssf/verify": lambda holdings: {"stream_id": holdings.stream, "state": "s"},
    "PATCH v1/incidents/<str:incident_id>": lambda _: {
        "severity": "low",
        "dora_class": "not_major",
        "note": "n",
        "attachment": {"name": "mail.eml", "size": 1, "sha256": "0" * 64},
    },
    "POST v1/gateway/routes": lambda _: {
        "name": f"fuzzed-{uuid4().hex}",
        "credentials": ["dpop", "bearer"],
        "action": "read",
        "audience": "https://api.example",
        "highest_band": "low",
        "root": "verified",
        "agents": "own",
        "nonce_required": True,
        "uncertified_agents": True,
    },
    "POST access/v1/evaluation": _evaluation,
    "POST access/v1/evaluations": lambda holdings: {
        **_evaluation(holdings),
        "options": {"evaluations_semantic": "deny_on_first_deny"},
        "evaluations": [{}, {"action": {"name": "read"}}],
    },
    "PUT v1/approval-policies/<str:applies_to>": lambda _: {
        "ask_from": "medium",
        "always_ask": ["pay"],
        "ttl_seconds": 60,
    },
    "POST v1/blueprints": lambda _: {**BLUEPRINT, "owner": {"name": "k", "email": "k@example.com"}},
    "PATCH v1/blueprints/<str:blueprint_id>": lambda _: {"version": "2", "validity_days": 30},
    "POST v1/blueprints/<str:blueprint_id>/renew": lambda _: {"all_differing": True},
    "POST v1/stops": lambda _: STOP,
    "POST v1/stops/<str:stop_id>/release": lambda _: {"reason": "attacked"},
    "POST v1/access-reviews": lambda _: REVIEW,
    "PATCH v1/access-reviews/<str:review_id>": lambda _: {"every": None},
    "POST v1/access-reviews/<str:review_id>/items": lambda holdings: {
        "agent_ids": [holdings.agent],
        "decision": "keep",
    },
    "POST v1/access-reviews/<str:review_id>/items/<str:agent_id>": lambda _: {"decision": "keep"},
    "POST v1/owners/replace": lambda _: {
        "from": "nobody@example.com",
        "to": {"name": "Kim Berg", "email": "kim.berg@example.com"},
    },
    "POST v1/approvals": lambda holdings: {
        "agent_id": holdings.agent,
        "action": "pay",
        "action_type": "transaction_initiated",
        "details": {"amount": 1, "payee": "x"},
        "ttl_seconds": 60,
    },
    "PATCH v1/gateway/routes/<str:route_id>": lambda _: {"highest_band": "medium", "agents": "any"},
    **{
        f"{method} v1/gateway/authorize/{target}": lambda _: None
        for method in ("POST", "PUT", "PATCH")
        for target in ("", "<path:target>")
    },
    "POST v1/reports": lambda holdings: {
        "type": "eu_ai_act",
        "period_start": "2026-01-01",
        "period_end": "2026-02-01",
        "agent_ids": [holdings.agent],
    },
    "POST v1/report-schedules": lambda _: {"type": "mica", "cadence": "month"},
    "PATCH v1/report-schedules/<str:schedule_id>": lambda _: {"cadence": "month"},
}


def lacking(routes: list[Route]) -> list[str]:
    """Operations that send a body and that no valid request is known of: a new endpoint needs one here."""
    wanted = [f"{method} {route.pattern}" for route in routes for method in route.actions]
    return [name for name in wanted if name.split()[0] in ("POST", "PATCH", "PUT") and name not in BODIES]


def headers_of(route: Route, holdings: Holdings) -> dict[str, str]:
    """The headers in which a gateway names the client's certificate and what it asks for."""
    if not route.decides:
        return {}
    return {service_header("Cert-Serial"): holdings.serial, service_header("Action"): "read"}


def valid_call(route: Route, method: str, holdings: Holdings, *, key: str | None) -> Call:
    """A request that the service grants; what it names in the path and in the body is `holdings`'s."""
    make = BODIES.get(f"{method} {route.pattern}")
    body = make(holdings) if make else None
    headers = headers_of(route, holdings)
    if isinstance(body, bytes):
        headers = {"Content-Type": FORM_TYPE if route.is_oauth else OCSP_TYPE}
    return call(
        method, route.address(holdings), key=None if route.is_public else key, body=body, headers=headers
    )
