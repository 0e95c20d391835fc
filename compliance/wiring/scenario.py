"""The life of an agent, played over real HTTP against a running service and judged step by step."""

import statistics
from dataclasses import dataclass, field
from time import perf_counter, sleep
from typing import Any

from django.conf import settings

from compliance.wiring.client import Api
from compliance.wiring.openssl import openssl_verdict
from compliance.wiring.receiver import Received, receiver
from compliance.wiring.story import Story, expect

ORDINARY_EVENTS = 100
PERMITTED = ["read_market_data", "place_order"]
CHAIN = [
    {"sub": "alice@example.com", "type": "human"},
    {"sub": "trade-bot", "type": "agent"},
    {"sub": "price-checker", "type": "sub_agent"},
]
TOLD = [
    "agent.created",
    "certificate.issued",
    "agent.activated",
    "delegation.issued",
    "message.signed",
    "event.high_risk",
    "certificate.revoked",
    "agent.suspended",
]


@dataclass
class Cast:
    """What the steps hand on to each other."""

    api: Api
    received: Received
    hook_url: str
    agent: dict[str, Any] = field(default_factory=dict)
    certificate: dict[str, Any] = field(default_factory=dict)
    webhook: dict[str, Any] = field(default_factory=dict)
    breached_at: float = 0.0

    @property
    def agent_path(self) -> str:
        return f"/v1/agents/{self.agent['id']}"


def play(story: Story, api: Api) -> None:
    """Play every step; raises at the first that differs from what the service promises."""
    header = f"X-{settings.SERVICE_NAME.title()}-Signature"
    with receiver(header) as (url, received):
        cast = Cast(api, received, url)
        try:
            _get_certified(story, cast)
            _be_verified(story, cast)
            _work(story, cast)
            _go_astray(story, cast)
            _be_told_of(story, cast)
            _come_back(story, cast)
            _be_suspended(story, cast)
        finally:
            if cast.webhook:
                api.delete(f"/v1/webhooks/{cast.webhook['id']}")


def _get_certified(story: Story, cast: Cast) -> None:
    with story.step("Subscribe a webhook on a local receiver") as step:
        events = [
            "agent.created",
            "certificate.issued",
            "certificate.revoked",
            "risk.alert",
            "agent.high_risk",
        ]
        body = {"url": cast.hook_url, "events": events, "description": "scenario"}
        cast.webhook = cast.api.post("/v1/webhooks", body, status=201)["data"]
        cast.received.secret = cast.webhook["secret"]
        step.note = f"{len(events)} event names"
    begun = perf_counter()
    with story.step("Register an agent") as step:
        profile = {
            "name": "trade-bot",
            "model": "gpt-5",
            "version": "2.1.0",
            "model_hash": "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "metadata": {"permitted_actions": PERMITTED},
        }
        cast.agent = cast.api.post("/v1/agents", profile, status=201)["data"]
        expect(cast.agent["status"] == "pending", f"status is {cast.agent['status']}, not pending")
        step.note = cast.agent["did"]
    with story.step("Certify it (register + certify)", target=3) as step:
        cast.certificate = cast.api.post(f"{cast.agent_path}/certify", status=201)["data"]
        step.seconds = perf_counter() - begun
        step.note = f"serial {cast.certificate['serial_number']}"
        expect(cast.certificate["status"] == "active", "the certificate is not active")


def _be_verified(story: Story, cast: Cast) -> None:
    with story.step("openssl accepts certificate, chain and CRL") as step:
        step.note = _judge(cast)
        expect(step.note == "OK", f"openssl says: {step.note}")
    with story.step("Anyone verifies it by serial", target=0.5) as step:
        answer = cast.api.public_get(f"/v1/verify/{cast.certificate['serial_number']}").json()["data"]
        expect(answer["status"] == "active", f"status is {answer['status']}")
        expect(answer["agent_id"] == cast.agent["id"], "another agent is named")
        expect(answer["permitted_actions"] == PERMITTED, "the scope differs from what was registered")
        step.note = f"{answer['status']}, operator {answer['operator']}"


def _work(story: Story, cast: Cast) -> None:
    with story.step(f"Stream {ORDINARY_EVENTS} ordinary events (p99)", target=0.2) as step:
        times, bands = [], set()
        for number in range(ORDINARY_EVENTS):
            begun = perf_counter()
            bands.add(_send(cast, _ordinary_event(number))["risk_band"])
            times.append(perf_counter() - begun)
        expect("high" not in bands, "an ordinary event was scored high")
        step.seconds = statistics.quantiles(times, n=100)[98]
        step.note = f"median {statistics.median(times) * 1000:.1f} ms"
    with story.step("Issue and verify a delegation token (3 actors)") as step:
        body = {"chain": CHAIN, "scope": "place_order", "ttl_seconds": 600}
        issued = cast.api.post(f"{cast.agent_path}/delegation", body, status=200)["data"]
        verified = cast.api.public_post("/v1/delegation/verify", {"token": issued["token"]})["data"]
        expect(verified["valid"] is True, f"the token does not verify: {verified}")
        expect(verified["chain"] == CHAIN, "the chain came back changed")
        step.note = verified["chain_display"]
    with story.step("Sign a message; a receiver verifies it") as step:
        payload = {"order": 17, "amount_usd": 250}
        signed = cast.api.post(f"{cast.agent_path}/sign", {"payload": payload}, status=200)["data"]
        proof = {"signature": signed["signature"], "certificate_serial": cast.certificate["serial_number"]}
        answer = cast.api.public_post("/v1/verify/message", {"payload": payload, **proof})["data"]
        forged = cast.api.public_post("/v1/verify/message", {"payload": {**payload, "order": 18}, **proof})[
            "data"
        ]
        expect(answer["valid"] is True, f"the signature does not verify: {answer}")
        expect(forged["valid"] is False, "a changed message verified")
        step.note = signed["algorithm"]


def _go_astray(story: Story, cast: Cast) -> None:
    with story.step("Three high-risk events") as step:
        scores = []
        for target in ("payroll-db", "admin-console", "key-vault"):
            event = {"actionType": "unauthorized_access_attempt", "details": {"target": target}}
            scored = _send(cast, event)
            expect(scored["risk_band"] == "high", f"scored {scored['risk_score']}, not high")
            scores.append(scored["risk_score"])
        cast.breached_at = perf_counter()
        step.note = f"scores {scores}"
    with story.step("Verify shows the certificate revoked", target=60) as step:
        answer = cast.api.public_get(f"/v1/verify/{cast.certificate['serial_number']}").json()["data"]
        step.seconds = perf_counter() - cast.breached_at
        expect(answer["status"] == "revoked", f"status is {answer['status']}")
        step.note = str(answer["revocation_reason"])
    with story.step("The stopped agent's next event is refused") as step:
        body = {"agentId": cast.agent["id"], "actionType": "api_call"}
        step.note = cast.api.post("/v1/events", body, status=422)["error"]


def _be_told_of(story: Story, cast: Cast) -> None:
    with story.step("The webhook certificate.revoked arrives, signed", target=5) as step:
        envelope = cast.received.wait_for("certificate.revoked", seconds=6)
        step.seconds = perf_counter() - cast.breached_at
        expect(envelope is not None, "nothing arrived")
        expect(cast.received.rejected == 0, "a signature did not hold")
        if envelope is not None:
            serial = envelope["data"]["serial_number"]
            expect(serial == cast.certificate["serial_number"], f"it names {serial}")
        step.note = f"{len(cast.received.envelopes)} deliveries so far"
    with story.step("The CRL lists it: openssl refuses the certificate", target=60) as step:
        verdict = _judge(cast)
        while verdict == "OK" and perf_counter() - cast.breached_at < 60:
            sleep(0.2)
            verdict = _judge(cast)
        step.seconds = perf_counter() - cast.breached_at
        expect("certificate revoked" in verdict, f"openssl says: {verdict}")
        step.note = "certificate revoked"
    with story.step("The audit log tells the whole story") as step:
        told = _audit_story(cast)
        missing = [what for what in TOLD if what not in told]
        expect(not missing, f"missing {missing}")
        step.note = f"{len(told)} entries"


def _come_back(story: Story, cast: Cast) -> None:
    with story.step("Reinstate after review, certify anew") as step:
        reinstated = cast.api.post(f"{cast.agent_path}/reinstate", {"reason": "cause fixed"}, status=200)
        expect(reinstated["data"]["status"] == "pending", "the agent is not pending")
        fresh = cast.api.post(f"{cast.agent_path}/certify", status=201)["data"]
        expect(fresh["serial_number"] != cast.certificate["serial_number"], "the serial number was reused")
        answer = cast.api.public_get(f"/v1/verify/{fresh['serial_number']}").json()["data"]
        expect(answer["status"] == "active", f"the new certificate is {answer['status']}")
        step.note = f"serial {fresh['serial_number']}"


def _be_suspended(story: Story, cast: Cast) -> None:
    with story.step("Suspend puts it on hold, reinstate lifts the hold") as step:
        serial = cast.api.get("/v1/certificates", agent_id=cast.agent["id"])["data"][0]["serial_number"]
        said = []
        for verb in ("suspend", "reinstate"):
            cast.api.post(f"{cast.agent_path}/{verb}", {"reason": "a look at it"}, status=200)
            answer = cast.api.public_get(f"/v1/verify/{serial}").json()["data"]
            said.append((answer["status"], answer["revocation_reason"], answer["agent_status"]))
        held, released = said
        expect(held == ("revoked", "certificateHold", "suspended"), f"suspended, it is {held}")
        expect(released == ("active", None, "active"), f"reinstated, it is {released}")
        step.note = "revoked (certificateHold), then active"


def _send(cast: Cast, event: dict[str, Any]) -> dict[str, Any]:
    body = {"agentId": cast.agent["id"], **event}
    scored: dict[str, Any] = cast.api.post("/v1/events", body, status=201)["data"]
    return scored


def _ordinary_event(number: int) -> dict[str, Any]:
    if number % 3:
        return {"actionType": "data_access", "details": {"tool": "read_market_data", "resource": "prices"}}
    return {"actionType": "api_call", "details": {"tool": "place_order", "host": "api.kraken.com"}}


def _judge(cast: Cast) -> str:
    authorities = cast.api.public_get("/v1/ca").json()["data"]["certificates"]
    pems = {authority["role"]: authority["pem"] for authority in authorities}
    return openssl_verdict(
        certificate_pem=cast.certificate["certificate_pem"],
        root_pem=pems["root"],
        issuing_pem=pems["issuing"],
        crl_pem=cast.api.public_get("/v1/crl", accept="text/plain").text,
    )


def _audit_story(cast: Cast) -> list[str]:
    """The event types of the entries that name the agent or its certificate, newest first."""
    entries = cast.api.get("/v1/audit-log", limit=100)["data"]
    ours = {cast.agent["id"], cast.certificate["id"]}
    return [
        entry["event_type"]
        for entry in entries
        if entry["affected_id"] in ours or (entry["metadata"] or {}).get("agent_id") == cast.agent["id"]
    ]
