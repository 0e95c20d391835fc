"""Forged delegation tokens and altered signatures: every one must be answered `valid: false`, with 200.

Some are signed with the service's genuine key, over claims that no delegation has: a signature makes nothing
true that the claims do not say.
"""

import base64
import json
from typing import Any

from bench.attack.core import Siege
from bench.attack.forgeries import forgeries, with_trailing_bits
from bench.attack.invariants import check
from bench.attack.values import garbled
from bench.attack.wire import Line, call
from bench.attack.world import PAYLOAD, Holdings, World, furnish
from compliance.core.encodings import b64url_decode, b64url_encode
from compliance.core.environments import Environment


def run(siege: Siege, world: World) -> None:
    """Send every forgery, then seeded damage to a genuine token."""
    with Line(siege) as line:
        for environment in Environment:
            holdings = furnish(siege, line, world.keys.of(environment))
            _expect_valid(siege, line, holdings.token)
            for name, token in siege.within(list(forgeries(holdings.token, environment)), "forgeries"):
                _expect_invalid(siege, line, name, token)
            chance = siege.random(environment.value)
            for _ in siege.within(range(siege.pick(short=60, long=3_000)), "damaged tokens"):
                token = garbled(chance, holdings.token.encode()).decode("latin-1")
                if token != holdings.token:
                    _expect_invalid(siege, line, "damaged", token)
            _altered_signatures(siege, line, holdings)
            _altered_jws(siege, line, holdings)


def _expect_valid(siege: Siege, line: Line, token: str) -> None:
    reply = line.ask(call("POST", "/v1/delegation/verify", body={"token": token}))
    if reply.status != 200 or not reply.data or reply.data.get("valid") is not True:
        siege.report("a genuine token is refused", "POST /v1/delegation/verify", str(reply))


def _expect_invalid(siege: Siege, line: Line, name: str, token: str) -> None:
    where = f"POST /v1/delegation/verify: {name.partition(':')[0]}"
    reply = line.ask(call("POST", "/v1/delegation/verify", body={"token": token}))
    check(siege, reply, name, where=where)
    # An empty string, or one that is no text, is refused before it is looked at as a token.
    if reply.status == 400 and (not token.strip() or "\0" in token):
        return
    if reply.status != 200 or not isinstance(reply.data, dict) or reply.data.get("valid") is not False:
        siege.report("a forged token counts", where, f"{name}: {reply}")


def _altered_signatures(siege: Siege, line: Line, holdings: Holdings) -> None:
    """A message's signature spelled otherwise does not count; every certificate can be asked about."""
    where = "POST /v1/verify/message"
    genuine = holdings.signature
    for name, signature, payload in (
        ("genuine", genuine, PAYLOAD), ("trailing bits", with_trailing_bits(genuine), PAYLOAD),
        ("no padding", genuine.rstrip("="), PAYLOAD),
        ("a line break", genuine[:60] + "\n" + genuine[60:], PAYLOAD),
        ("a foreign sign", genuine[:60] + "!" + genuine[60:], PAYLOAD),
        ("URL's alphabet", genuine.replace("+", "-").replace("/", "_") + "A===", PAYLOAD),
        ("another payload", genuine, {"a": True}), ("twice", genuine + genuine, PAYLOAD),
        ("empty", "", PAYLOAD), ("zeros", base64.b64encode(bytes(256)).decode(), PAYLOAD),
    ):  # fmt: skip
        body = {"payload": payload, "signature": signature, "certificate_serial": holdings.serial}
        for key in (None, "service_live_madeup", "service_test_madeup", "x"):
            reply = line.ask(call("POST", "/v1/verify/message", key=key, body=body))
            check(siege, reply, f"{name}, key {key}", where=where)
            counts = reply.status == 200 and bool(reply.data) and reply.data.get("valid") is True
            if counts != (name == "genuine" and signature == genuine):
                rule = "an altered signature counts" if counts else "a genuine signature is refused"
                siege.report(rule, where, f"{name}, key {key}: {reply}")


def _altered_jws(siege: Siege, line: Line, holdings: Holdings) -> None:
    """A message's JWS counts in the one form that the service wrote, for the payload and nobody else."""
    where = "POST /v1/verify/message"
    protected, _, signature = holdings.jws.split(".")
    header = json.loads(b64url_decode(protected))
    changes: list[dict[str, Any]] = [
        *({"alg": name} for name in ("none", "HS256", "PS256", "ES256", "")),
        *({name: "https://127.0.0.1:9/keys"} for name in ("jku", "x5u")),
        *({"jwk": {}}, {"x5c": []}, {"crit": ["b64", "exp"]}, {"crit": []}, {"b64": True}, {"b64": 0}),
        *({"typ": "JWT"}, {"typ": "JOSE"}, {"typ": "delegation+jwt"}, {"aud": "x"}, {"exp": 1}),
        *({"kid": holdings.did}, {"kid": f"{holdings.did}#{'4' * 40}"}, {"kid": None}, {"x5t#S256": ""}),
    ]
    forged = [f"{_encoded({**header, **change})}..{signature}" for change in changes]
    forged += [
        f"{protected}.{b64url_encode(json.dumps(PAYLOAD).encode())}.{signature}", f"{protected}..",
        f"..{signature}", f"{protected}..{signature}=", f"{protected}..{with_trailing_bits(signature)}",
        f"{protected}..{b64url_encode(base64.b64decode(holdings.signature))}",
        f"{_encoded(dict(reversed(header.items())))}..{signature}", holdings.token,
    ]  # fmt: skip
    chance = siege.random(holdings.did)
    for _ in siege.within(range(siege.pick(short=40, long=2_000)), "damaged JWS"):
        forged.append(garbled(chance, holdings.jws.encode()).decode("latin-1"))
    for jws, payload in [(holdings.jws, PAYLOAD), (holdings.jws, {}), *((one, PAYLOAD) for one in forged)]:
        reply = line.ask(call("POST", where.removeprefix("POST "), body={"payload": payload, "jws": jws}))
        check(siege, reply, jws, where=where)
        counts = reply.status == 200 and bool(reply.data) and reply.data.get("valid") is True
        if counts != (jws == holdings.jws and payload == PAYLOAD):
            rule = "a forged JWS counts" if counts else "a genuine JWS is refused"
            siege.report(rule, where, f"{jws}: {reply}")


def _encoded(header: dict[str, Any]) -> str:
    return b64url_encode(json.dumps(header, separators=(",", ":")).encode())
