"""What a stopped agent, or one whose certificate ended, must not do any more, however it is asked."""

from collections.abc import Mapping
from typing import Any

from bench.attack.core import Siege
from bench.attack.invariants import check
from bench.attack.wire import Line, Reply, call
from bench.attack.world import PAYLOAD, World, certified_agent
from compliance.core.environments import Environment

CHAIN = [{"sub": "user:alice", "type": "human"}]
LONGER = [*CHAIN, {"sub": "agent:a", "type": "agent"}]
REASON = {"reason": "an attack"}


class Tenant:
    """One key's way to the API, and what is checked of each answer."""

    def __init__(self, siege: Siege, line: Line, key: str) -> None:
        self.siege, self.line, self.key = siege, line, key

    def ask(self, method: str, path: str, body: Any = None) -> Reply:
        reply = self.line.ask(call(method, path, key=self.key, body=body))
        check(self.siege, reply, f"{method} {path}", where="an agent's standing")
        return reply

    def post(self, path: str, body: Any = None) -> Reply:
        return self.ask("POST", path, body)

    def expect_refused(self, rule: str, reply: Reply) -> None:
        if reply.status != 422:
            self.siege.report(rule, "an agent's standing", str(reply))


def run(siege: Siege, world: World) -> None:
    """Every way to stop, in both environments; then scope and lineage of delegations."""
    with Line(siege) as line:
        for environment in Environment:
            tenant = Tenant(siege, line, world.keys.of(environment))
            for stop in ("suspend", "retire", "revoke", "strikes"):
                _stopped(tenant, stop)
            _lineage(tenant)
            _scope(tenant)


def _stopped(tenant: Tenant, stop: str) -> None:
    """Neither verify nor a signature nor a delegation counts; nothing is recorded or signed."""
    agent, certificate = certified_agent(tenant.line, tenant.key)
    signature = tenant.post(f"/v1/agents/{agent}/sign", {"payload": PAYLOAD}).data["signature"]
    for path, body in _stops(agent, certificate)[stop]:
        tenant.post(path, body)
    name = f"after {stop}"
    serial = certificate["serial_number"]
    shown = tenant.ask("GET", f"/v1/verify/{serial}").data
    if not shown or shown["status"] == "active":
        tenant.siege.report(f"{name}, verify says active", "GET /v1/verify/{serial}", str(shown)[:200])
    message = {"payload": PAYLOAD, "signature": signature, "certificate_serial": serial}
    judged = tenant.post("/v1/verify/message", message)
    if judged.status == 200 and judged.data["valid"]:
        tenant.siege.report(f"{name}, a message counts", "POST /v1/verify/message", str(judged))
    event = {"agentId": agent, "actionType": "data_access"}
    tenant.expect_refused(f"{name}, an event is taken", tenant.post("/v1/events", event))
    tenant.expect_refused(f"{name}, it signs", tenant.post(f"/v1/agents/{agent}/sign", {"payload": 1}))
    granted = tenant.post(f"/v1/agents/{agent}/delegation", {"chain": CHAIN, "scope": "read"})
    tenant.expect_refused(f"{name}, it delegates", granted)


def _stops(agent: str, certificate: Mapping[str, str]) -> dict[str, list[tuple[str, Any]]]:
    high = {"agentId": agent, "actionType": "unauthorized_access_attempt", "details": {"target": "/etc"}}
    return {
        "suspend": [(f"/v1/agents/{agent}/suspend", REASON)],
        "retire": [(f"/v1/agents/{agent}/retire", REASON)],
        "revoke": [(f"/v1/certificates/{certificate['id']}/revoke", REASON)],
        "strikes": [("/v1/events", high)] * 3,
    }


def _lineage(tenant: Tenant) -> None:
    """A token of a revoked certificate is handed on by nobody, certified again or not."""
    agent, certificate = certified_agent(tenant.line, tenant.key)
    other, _ = certified_agent(tenant.line, tenant.key)
    granted = tenant.post(f"/v1/agents/{agent}/delegation", {"chain": CHAIN, "scope": "read"}).data["token"]
    handed = {"chain": LONGER, "scope": "read", "parent_token": granted}
    behind = tenant.post(f"/v1/agents/{other}/delegation", handed).data["token"]
    last = {"chain": [*LONGER, {"sub": "s", "type": "service"}], "scope": "read", "parent_token": behind}
    tenant.post(f"/v1/certificates/{certificate['id']}/revoke", REASON)
    for when in ("after its revocation", "after it is certified again"):
        for whose in (agent, other):
            for body in (handed, last):
                reply = tenant.post(f"/v1/agents/{whose}/delegation", body)
                tenant.expect_refused(f"a revoked certificate's token is handed on {when}", reply)
        tenant.post(f"/v1/agents/{agent}/certify")


def _scope(tenant: Tenant) -> None:
    """An edit widens nothing before a certificate says so."""
    agent, _ = certified_agent(tenant.line, tenant.key)
    for metadata in ({"permitted_actions": ["read", "pay", "admin"]}, {}, {"scopes": ["admin"]}, None):
        tenant.ask("PATCH", f"/v1/agents/{agent}", {"metadata": metadata})
        reply = tenant.post(f"/v1/agents/{agent}/delegation", {"chain": CHAIN, "scope": "admin"})
        tenant.expect_refused("an edit widens what is delegated", reply)
