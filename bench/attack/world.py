"""What there is to attack: two tenants, keys of every state, and objects of each tenant and environment."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp

from auditlog.sealing import keys as log_keys, sealer
from auditlog.vocabulary import Actor
from bench.attack.core import Siege
from bench.attack.wire import Line, Reply, call
from compliance.api.gate import Scope
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.encodings import b64url_decode, b64url_encode
from compliance.core.environments import Environment
from delegation.agent_keys import services as agent_keys
from delegation.jose.holder_keys import thumbprint
from tenancy import services as tenancy
from tenancy.models import ApiKey, Tenant

ACTOR = Actor.system("attack")
# Nobody listens there, and nothing is sent: the stack of an attack has no sender.
LOOPBACK_HOOK = "http://127.0.0.1:9/hook"
PERMITTED = ["read", "pay"]
PAYLOAD = {"a": 1}


class CannotBegin(Exception):
    """The service refused what an attack needs first."""


STOP = {"match": {"model_hash": "sha256:nobody"}, "reason": "attacked"}
"""A stop that matches no agent."""
BLUEPRINT = {"name": "attacked", "model_hash": "h", "permitted_actions": PERMITTED}
REVIEW = {"match": {"all": True}, "reviewer": "kim.berg@example.com", "due_at": "2099-01-01T00:00:00Z"}


@dataclass(frozen=True)
class Holdings:
    """One of each thing that a tenant has in an environment."""

    agent: str
    certificate: str
    serial: str
    event: str
    webhook: str
    stream: str
    issuer: str
    delivery: str
    report: str
    schedule: str
    incident: str
    gateway_route: str
    approval: str
    stop: str
    blueprint: str
    renewal: str
    review: str
    traced_name: str
    agent_key: str
    tenant: str
    entry: str
    did: str
    token: str
    token_id: str
    status_list: str
    signature: str
    jws: str
    authority_serial: str
    ocsp_request: bytes = field(repr=False)

    def value(self, parameter: str) -> str:
        """What stands in a path for a parameter of that name."""
        plain = {
            "agent_id": self.agent, "certificate_id": self.certificate, "event_id": self.event,
            "webhook_id": self.webhook, "stream_id": self.stream, "issuer_id": self.issuer,
            "delivery_id": self.delivery, "report_id": self.report, "schedule_id": self.schedule,
            "incident_id": self.incident, "route_id": self.gateway_route, "target": "orders/7",
            "applies_to": f"agent:{self.agent}", "entry_id": self.entry, "token_id": self.token_id,
            "list_id": self.status_list, "level": "0", "path": "000.p/1", "serial": self.serial,
            "did": self.did, "part": "0", "approval_id": self.approval, "stop_id": self.stop,
            "blueprint_id": self.blueprint, "renewal_id": self.renewal,
            "review_id": self.review, "name_id": self.traced_name, "key_id": self.agent_key,
            "tenant_id": self.tenant,
            "encoded": quote(b64url_encode(self.ocsp_request), safe=""),
        }  # fmt: skip
        return plain[parameter]

    @property
    def ids(self) -> frozenset[str]:
        """What no other tenant may be told."""
        return frozenset(
            {
                *(self.agent, self.certificate, self.event, self.webhook, self.delivery, self.report),
                *(self.schedule, self.incident, self.gateway_route, self.entry, self.serial, self.token_id),
                *(self.issuer, self.stream, self.approval, self.stop, self.blueprint, self.renewal),
                *(self.review, self.traced_name, self.agent_key),
            }
        )


def absent(like: Holdings) -> Holdings:
    """Ids that nothing has."""
    return replace(
        like, agent=str(uuid4()), serial=uuid4().hex, certificate=str(uuid4()), event=str(uuid4()),
        webhook=str(uuid4()), stream=str(uuid4()), issuer=str(uuid4()), delivery=str(uuid4()),
        report=str(uuid4()), schedule=str(uuid4()), incident=str(uuid4()), gateway_route=str(uuid4()),
        entry=str(uuid4()), token_id=str(uuid4()), approval=str(uuid4()), stop=str(uuid4()),
        blueprint=str(uuid4()), renewal=str(uuid4()),
        review=str(uuid4()), traced_name=str(uuid4()), agent_key=str(uuid4()), tenant=str(uuid4()),
    )  # fmt: skip


@dataclass(frozen=True)
class Keys:
    """Credentials of one tenant."""

    live: str
    test: str
    scoped: Mapping[str, str] = field(repr=False)
    without: Mapping[str, str] = field(repr=False)
    revoked: str = ""
    expired: str = ""

    def of(self, environment: Environment) -> str:
        return self.live if environment is Environment.LIVE else self.test


@dataclass
class World:
    """The tenant that is attacked, and another beside it."""

    tenant: Tenant
    keys: Keys
    other: Keys

    @cached_property
    def secrets(self) -> frozenset[str]:
        """What no answer may hold."""
        return frozenset({self.keys.live, self.keys.test, self.other.live, self.other.test})


def make_world() -> World:
    """Tenants and keys, past the API, which makes none; then the log is sealed, as no worker runs."""
    tenant, other = (
        tenancy.create_tenant(name=name, actor=ACTOR, now=now()) for name in ("Attacked", "Beside")
    )
    world = World(tenant, _keys(tenant), _keys(other))
    for environment in Environment:
        with environments.use(environment):
            log_keys.bootstrap(actor=ACTOR, now=now())
            sealer.seal_all()
            sealer.sign_head(now=now())
    return world


def _keys(tenant: Tenant) -> Keys:
    every = [scope.value for scope in Scope]
    revoked, expired = _issue(tenant, Environment.LIVE), _issue(tenant, Environment.LIVE)
    with environments.use(Environment.LIVE):
        tenancy.revoke_key(key_id=revoked.row.id, actor=ACTOR, now=now())
        ApiKey.objects.filter(id=expired.row.id).update(expires_at=now() - timedelta(seconds=1))
    return Keys(
        live=_issue(tenant, Environment.LIVE).secret,
        test=_issue(tenant, Environment.TEST).secret,
        scoped={scope: _issue(tenant, Environment.LIVE, [scope]).secret for scope in every},
        without={
            scope: _issue(tenant, Environment.LIVE, [other for other in every if other != scope]).secret
            for scope in every
        },
        revoked=revoked.secret,
        expired=expired.secret,
    )


def _issue(tenant: Tenant, environment: Environment, scopes: list[str] | None = None) -> tenancy.IssuedKey:
    with environments.use(environment):
        mirrored = tenancy.get_tenant(tenant_id=tenant.id)
        return tenancy.create_key(tenant=mirrored, name="attack", scopes=scopes, actor=ACTOR, now=now())


def new_agent(line: Line, key: str, **more: object) -> str:
    """A registered agent."""
    body: dict[str, object] = {"name": "attacked", "model_hash": "h"}
    body["metadata"] = {"permitted_actions": PERMITTED}
    body["agent_card"] = {"url": "https://agents.example/attacked"}
    body |= more
    return str(_made(line.ask(call("POST", "/v1/agents", key=key, body=body)))["id"])


def certified_agent(line: Line, key: str) -> tuple[str, dict[str, str]]:
    """An active agent and its certificate."""
    agent = new_agent(line, key)
    return agent, _made(line.ask(call("POST", f"/v1/agents/{agent}/certify", key=key)))


def furnish(siege: Siege, line: Line, key: str) -> Holdings:
    """One of everything, made through the API by the key's owner."""
    agent, certificate = certified_agent(line, key)
    event = _made(
        line.ask(call("POST", "/v1/events", key=key, body={"agentId": agent, "actionType": "data_access"}))
    )
    hook_body = {"url": LOOPBACK_HOOK, "events": ["certificate.expired"]}
    webhook = _made(line.ask(call("POST", "/v1/webhooks", key=key, body=hook_body)))
    delivery = _made(line.ask(call("POST", f"/v1/webhooks/{webhook['id']}/test", key=key)))
    stream = _stream(line, key)
    trust = {"issuer": f"https://{uuid4()}.example.com", "audiences": ["app"]}
    issuer = _made(line.ask(call("POST", "/v1/trusted-issuers", key=key, body=trust)))
    period = {"type": "eu_ai_act", "period_start": "2026-01-01", "period_end": "2026-02-01"}
    report = _made(line.ask(call("POST", "/v1/reports", key=key, body=period)))
    monthly = {"type": "eu_ai_act", "cadence": "month"}
    schedule = _made(line.ask(call("POST", "/v1/report-schedules", key=key, body=monthly)))
    incident = _incident(line, key)
    named = {"name": f"attacked-{uuid4().hex}", "credentials": ["serial", "bearer"]}
    gateway_route = _made(line.ask(call("POST", "/v1/gateway/routes", key=key, body=named)))["id"]
    _made(line.ask(call("PUT", f"/v1/approval-policies/agent:{agent}", key=key, body={"ask_from": "never"})))
    act = {"agent_id": agent, "action": "pay"}
    approval = _made(line.ask(call("POST", "/v1/approvals", key=key, body=act)))["id"]
    stop = _made(line.ask(call("POST", "/v1/stops", key=key, body=STOP)))["id"]
    blueprint = _made(line.ask(call("POST", "/v1/blueprints", key=key, body=BLUEPRINT)))["id"]
    renew, everyone = f"/v1/blueprints/{blueprint}/renew", {"all_differing": True}
    renewal = _made(line.ask(call("POST", renew, key=key, body=everyone)))["id"]
    review = _made(line.ask(call("POST", "/v1/access-reviews", key=key, body=REVIEW)))["id"]
    named = {"source": "service.name", "name": uuid4().hex, "agent_id": agent}
    traced_name = _made(line.ask(call("POST", "/v1/otlp/names", key=key, body=named)))["id"]
    tenant = str(line.ask(call("GET", f"/v1/agents/{agent}", key=key)).data["tenant_id"])
    agent_key = _agent_key(tenant, agent, "test" if "_test_" in key else "live")
    grant = {"chain": [{"sub": "user:alice", "type": "human"}], "scope": "read"}
    token = _made(line.ask(call("POST", f"/v1/agents/{agent}/delegation", key=key, body=grant)))
    message = {"payload": PAYLOAD, "format": "jws"}
    signed = _made(line.ask(call("POST", f"/v1/agents/{agent}/sign", key=key, body=message)))
    entry = line.ask(call("GET", "/v1/audit-log?limit=1", key=key)).data[0]
    environment = "test" if "_test_" in key else "live"
    authority = _made(line.ask(call("GET", f"/v1/ca?environment={environment}")))["certificates"][0]
    return Holdings(
        agent=agent, certificate=certificate["id"], serial=certificate["serial_number"], event=event["id"],
        webhook=webhook["id"], stream=stream, issuer=issuer["id"], delivery=delivery["id"],
        report=report["id"], schedule=schedule["id"], incident=incident, gateway_route=gateway_route,
        approval=approval, stop=stop, blueprint=blueprint, renewal=renewal, review=review,
        traced_name=traced_name, agent_key=agent_key, tenant=tenant, entry=entry["id"],
        did=f"did:{_service_name(key)}:{environment}:{agent}", token=token["token"],
        token_id=token["token_id"], status_list=_status_list(token["token"]), signature=signed["signature"],
        jws=signed["jws"], authority_serial=authority["serial_number"],
        ocsp_request=_ocsp_request(certificate["certificate_pem"], authority["pem"]),
    )  # fmt: skip


def _agent_key(tenant: str, agent: str, environment: str) -> str:
    """A key of the agent, as it would register one itself."""
    x = b64url_encode(Ed25519PrivateKey.generate().public_key().public_bytes_raw())
    jwk = {"crv": "Ed25519", "kty": "OKP", "x": x}
    with environments.use(Environment(environment)):
        row = agent_keys.register(
            tenant_id=UUID(tenant),
            agent_id=agent,
            jwk=jwk,
            proven_key=thumbprint(jwk),
            actor=ACTOR,
            now=now(),
        )
    return str(row.id)


def _incident(line: Line, key: str) -> str:
    """The incident of another agent, whose certificate was revoked for a reason that opens one."""
    agent, certificate = certified_agent(line, key)
    body = {"reason": "keyCompromise"}
    _made(line.ask(call("POST", f"/v1/certificates/{certificate['id']}/revoke", key=key, body=body)))
    found = line.ask(call("GET", f"/v1/incidents?agent_id={agent}", key=key)).data
    return str(found[0]["id"])


def _stream(line: Line, key: str) -> str:
    """A stream of signals that is polled: a new one, or another attack's if the tenant may have no more.

    The standard's answers have no envelope.
    """
    reply = line.ask(call("POST", "/v1/ssf/streams", key=key, body={"description": "attacked"}))
    if reply.status == 409:
        return str(line.ask(call("GET", "/v1/ssf/streams", key=key)).json[0]["stream_id"])
    if reply.status != 201:
        raise CannotBegin(str(reply))
    return str(reply.json["stream_id"])


def _status_list(token: str) -> str:
    """The id of the list that a token names."""
    claims = json.loads(b64url_decode(token.split(".")[1]))
    return str(claims["status"]["status_list"]["uri"]).rpartition("/")[2]


def _service_name(key: str) -> str:
    return key.partition("_")[0]


def _ocsp_request(certificate: str, authority: str) -> bytes:
    subject, issuer = (x509.load_pem_x509_certificate(pem.encode()) for pem in (certificate, authority))
    builder = ocsp.OCSPRequestBuilder().add_certificate(subject, issuer, SHA256())
    return builder.build().public_bytes(Encoding.DER)


def _made(reply: Reply) -> Any:
    """The object that an answer gives, raising `CannotBegin` where it gives none."""
    if reply.status not in (200, 201, 202) or not isinstance(reply.data, dict):
        raise CannotBegin(str(reply))
    return reply.data
