"""Who may stop whom and who may pass: bearers, the uncertified, foreign names in chains, reinstating."""

from uuid import uuid4

from bench.attack.core import Siege
from bench.attack.standing import CHAIN, REASON, Tenant
from bench.attack.wire import Line, Reply, call
from bench.attack.world import World, certified_agent, new_agent
from compliance.api.answers import service_header
from compliance.core.environments import Environment

ACTIONS = ("wire_money", "delete", "admin")
"""What no agent here is certified for; three strikes stop one."""
HIGH = {"actionType": "unauthorized_access_attempt", "details": {"target": "/etc"}}


def run(siege: Siege, world: World) -> None:
    """Each in both environments."""
    with Line(siege) as line:
        for environment in Environment:
            tenant = Tenant(siege, line, world.keys.of(environment))
            other = world.keys.test if environment is Environment.LIVE else world.keys.live
            _bearer(tenant)
            _uncertified(tenant, Tenant(siege, line, world.other.of(environment)))
            _foreign_names(tenant, [world.other.of(environment), other], environment)
            if environment is Environment.LIVE:
                _reinstate(tenant, world.keys.without["agents:reinstate"])


def _bearer(tenant: Tenant) -> None:
    """Nobody who was shown a bearer token has its agent stopped by asking for what it may not do."""
    agent, _ = certified_agent(tenant.line, tenant.key)
    service = [*CHAIN, {"sub": "a", "type": "agent"}, {"sub": "s", "type": "service"}]
    for chain, scope in ((CHAIN, "read"), (CHAIN, ""), (service, "")):
        token = tenant.post(f"/v1/agents/{agent}/delegation", {"chain": chain, "scope": scope}).data["token"]
        if scope and (reply := _decision(tenant, token, scope)).status != 200:
            tenant.siege.report("a gateway refuses what the token grants", "bearer", str(reply))
        for action in ACTIONS * 2:
            if _decision(tenant, token, action).status == 200:
                tenant.siege.report("a gateway lets pass what the token does not grant", "bearer", action)
    if (status := tenant.ask("GET", f"/v1/agents/{agent}").data["status"]) != "active":
        tenant.siege.report("bearers of its token have an agent stopped", "bearer", status)


def _uncertified(tenant: Tenant, other: Tenant) -> None:
    """An agent that was never certified passes no gateway, whatever its token says."""
    issued = 0
    for metadata in (None, {"permitted_actions": list(ACTIONS)}):
        agent = new_agent(tenant.line, tenant.key, metadata=metadata)
        grant = {"chain": CHAIN, "scope": " ".join(ACTIONS)}
        granted = tenant.post(f"/v1/agents/{agent}/delegation", grant)
        issued += granted.status == 200
        for asked in (tenant, other) if granted.status == 200 else ():
            reply = _decision(asked, granted.data["token"], ACTIONS[0], agents="any")
            if reply.status == 200:
                tenant.siege.report("an uncertified agent passes a gateway", "uncertified", str(reply))
    if not issued:
        tenant.siege.report("no token of an uncertified agent to try", "uncertified", str(granted))


def _foreign_names(tenant: Tenant, foreign: list[str], environment: Environment) -> None:
    """No chain names an agent of another tenant or environment, or one that nobody has."""
    agent, _ = certified_agent(tenant.line, tenant.key)
    own = [*CHAIN, {"sub": _did(tenant, environment.value, agent), "type": "agent"}]
    reply = tenant.post(f"/v1/agents/{agent}/delegation", {"chain": own, "scope": "read"})
    if reply.status != 200:
        tenant.siege.report("an agent may not name itself", "chain", str(reply))
    ids = [(new_agent(tenant.line, key), "test" if "_test_" in key else "live") for key in foreign]
    for named, where in (*ids, (str(uuid4()), environment.value)):
        sub = _did(tenant, where, named)
        for name in (sub, f"{sub}#key", sub.upper(), f"{sub}?a=b"):
            for kind in ("agent", "human", "service"):
                chain = [*CHAIN, {"sub": name, "type": kind}]
                reply = tenant.post(f"/v1/agents/{agent}/delegation", {"chain": chain, "scope": "read"})
                if reply.status == 200 and name.startswith("did:"):
                    tenant.siege.report("a chain names a foreign agent", "chain", f"{chain}: {reply}")


def _did(tenant: Tenant, environment: str, agent: str) -> str:
    return f"did:{tenant.key.partition('_')[0]}:{environment}:{agent}"


def _reinstate(tenant: Tenant, key: str) -> None:
    """After the service stopped an agent, `agents:write` alone does not reinstate it."""
    agent, _ = certified_agent(tenant.line, tenant.key)
    for _ in range(3):
        tenant.post("/v1/events", {"agentId": agent, **HIGH})
    path = f"/v1/agents/{agent}/reinstate"
    reply = tenant.line.ask(call("POST", path, key=key, body=REASON))
    if reply.status != 403 or tenant.ask("GET", f"/v1/agents/{agent}").data["status"] != "suspended":
        tenant.siege.report("a key without agents:reinstate reinstates", "reinstate", str(reply))


def _decision(tenant: Tenant, token: str, action: str, *, agents: str = "own") -> Reply:
    """What a gateway of the tenant is answered about a bearer token."""
    name = f"attacked-{uuid4().hex}"
    tenant.post("/v1/gateway/routes", {"name": name, "credentials": ["bearer"], "agents": agents})
    headers = {
        service_header("Gateway-Key"): tenant.key, service_header("Gateway-Route"): name,
        service_header("Action"): action, "Authorization": f"Bearer {token}",
    }  # fmt: skip
    return tenant.line.ask(call("GET", "/v1/gateway/authorize", headers=headers))
