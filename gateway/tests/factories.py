"""Gateways, routes and agents for tests."""

from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from agents.models import Agent
from auditlog.vocabulary import Actor
from certificates.tests.factories import make_certified_agent
from compliance.core.clock import now
from compliance.tests.client import ApiClient
from delegation.tests.factories import make_token
from delegation.tests.holders import Holder
from gateway import services
from gateway.models import GatewayRoute
from tenancy.models import Tenant
from tenancy.tests.factories import make_key

ACTOR = Actor.system("tests")
PATH = "/v1/gateway/authorize"
PERMITTED = ["read", "pay"]
AUDIENCE = "https://api.example"
URI = f"{AUDIENCE}/orders/7"


def make_route(tenant: Tenant, **fields: Any) -> GatewayRoute:
    """A route that takes every credential, unless told otherwise."""
    named = {"name": f"r-{uuid4().hex[:12]}", "credentials": ["serial", "bearer", "dpop"], **fields}
    return services.create(tenant_id=tenant.id, fields=named, actor=ACTOR, now=now())


def make_permitted_agent(tenant: Tenant, **fields: Any) -> Agent:
    """An active agent whose certificate permits `PERMITTED`."""
    return make_certified_agent(tenant, **{"metadata": {"permitted_actions": PERMITTED}, **fields})


def serial_of(agent: Agent) -> str:
    return str(agent.certificates.get(status="active").serial_number)


def token_of(agent: Agent, **grant: Any) -> str:
    return make_token(agent, **{"scope": "read", **grant}).token


@dataclass
class Bound:
    """An agent's token that is bound to the key of its holder."""

    agent: Agent
    grant: dict[str, Any] = field(default_factory=dict)
    holder: Holder = field(default_factory=Holder)
    token: str = ""

    def __post_init__(self) -> None:
        self.token = token_of(self.agent, bound_to=self.holder.jkt, **self.grant)

    def headers(self, **changed: Any) -> dict[str, str]:
        """A proven request; `changed` goes to the proof."""
        proof = self.holder.proof(**{"method": "GET", "uri": URI, "token": self.token, **changed})
        return {"Authorization": f"DPoP {self.token}", "DPoP": proof, **forwarded()}


def forwarded(method: str = "GET", uri: str = "/orders/7?x=1") -> dict[str, str]:
    """The client's request as a gateway tells of it."""
    return {
        "X-Forwarded-Method": method,
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": "api.example",
        "X-Forwarded-Uri": uri,
    }


@dataclass
class Gateway:
    """A tenant's gateway, which asks with its own key."""

    tenant: Tenant
    route: str = ""
    action: str = "read"
    key: str = ""

    def __post_init__(self) -> None:
        self.key = self.key or make_key(self.tenant, ["gateway:authorize"])

    def ask(self, path: str = PATH, *, method: str = "GET", **headers: str) -> Any:
        """The answer to a client's request; names of headers with `_` for `-`."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        own = {"X-Service-Gateway-Key": self.key, "X-Service-Gateway-Route": self.route}
        named = {**own, "X-Service-Action": self.action, **sent}
        given = {name: value for name, value in named.items() if value}
        return ApiClient()._send(method, path, None, given)

    def ask_serial(self, agent: Agent, **headers: str) -> Any:
        return self.ask(**{"X-Service-Cert-Serial": serial_of(agent), **headers})

    def ask_bearer(self, token: str, **headers: str) -> Any:
        return self.ask(**{"Authorization": f"Bearer {token}", **headers})


def refusal(answer: Any) -> tuple[int, str, str]:
    """Status, message and reason of a refusal of the client."""
    assert answer["X-Service-Gateway-Decision"] == "deny", answer.content
    assert answer["Cache-Control"] == "no-store"
    assert "X-Service-Agent-Id" not in answer
    return answer.status_code, answer.json()["error"], answer["X-Service-Gateway-Reason"]


def is_fault_of_gateway(answer: Any, status: int) -> bool:
    """Return whether the answer is of that status and no decision about the client."""
    return answer.status_code == status and "X-Service-Gateway-Decision" not in answer
