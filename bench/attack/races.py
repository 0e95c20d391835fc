"""Many parallel requests for what may happen once: exactly one succeeds, and what is left is consistent."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from uuid import uuid4

from bench.attack.core import Siege
from bench.attack.invariants import check
from bench.attack.wire import Call, Hang, Line, NoAnswer, Reply, call
from bench.attack.world import ACTOR, World, certified_agent, new_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from tenancy import services as tenancy
from tenancy.models import ApiKey
from tenancy.services import ApiKeyNotFound

PARALLEL = 12
Race = Callable[["Track"], None]


class Track:
    """The lines that run a race, and what is checked at its end."""

    def __init__(self, siege: Siege, world: World, stack: ExitStack) -> None:
        self.siege = siege
        self.key = world.keys.live
        self.test_key = world.keys.test
        self.world = world
        self.line = stack.enter_context(Line(siege))
        self._lines = [stack.enter_context(Line(siege)) for _ in range(PARALLEL)]
        self._pool = stack.enter_context(ThreadPoolExecutor(PARALLEL))

    def run(self, calls: Sequence[Call], *, where: str) -> list[Reply]:
        """The answers to calls that leave at the same moment."""
        barrier = threading.Barrier(len(calls))

        def ask(line: Line, asked: Call) -> Reply | None:
            barrier.wait()
            try:
                return line.ask(asked)
            except (NoAnswer, Hang) as error:
                self.siege.report(type(error).__name__, where, str(asked))
                return None

        answers = [reply for reply in self._pool.map(ask, self._lines, calls) if reply is not None]
        for reply in answers:
            check(self.siege, reply, "in a race", where=where)
        return answers

    def expect(self, where: str, replies: Iterable[Reply], *, once: int, rest: Sequence[int]) -> None:
        """Exactly one `once`; the others among `rest`."""
        found = Counter(reply.status for reply in replies)
        if found[once] != 1 or set(found) - {once, *rest}:
            self.siege.report(f"not one {once} and the rest {list(rest)}", where, str(dict(found)))

    def ask(self, method: str, path: str, body: object = None) -> Reply:
        """One call, by the tenant's live key."""
        return self.line.ask(call(method, path, key=self.key, body=body))

    def post(self, path: str, body: object = None, **headers: str) -> list[Call]:
        """The same call, `PARALLEL` times."""
        lines = [(name.replace("_", "-"), value) for name, value in headers.items()]
        return [call("POST", path, key=self.key, body=body, headers=lines)] * PARALLEL


def run(siege: Siege, world: World) -> None:
    """Run each race so many times."""
    with ExitStack() as stack:
        track = Track(siege, world, stack)
        for race in siege.within(list(RACES) * siege.pick(short=1, long=25), "races"):
            race(track)


def _certify(track: Track) -> None:
    agent = new_agent(track.line, track.key)
    path = f"/v1/agents/{agent}/certify"

    track.expect("certify", track.run(track.post(path), where="certify"), once=201, rest=[409])
    active = track.ask("GET", f"/v1/certificates?agent_id={agent}&status=active").data
    if len(active) != 1:
        track.siege.report("not one active certificate", "certify", str(len(active)))


def _revoke(track: Track) -> None:
    _, certificate = certified_agent(track.line, track.key)
    calls = track.post(f"/v1/certificates/{certificate['id']}/revoke", {"reason": "keyCompromise"})

    track.expect("revoke", track.run(calls, where="revoke"), once=200, rest=[409])


def _renew(track: Track) -> None:
    agent, certificate = certified_agent(track.line, track.key)

    replies = track.run(track.post(f"/v1/certificates/{certificate['id']}/renew"), where="renew")
    track.expect("renew", replies, once=201, rest=[409, 429])
    active = track.ask("GET", f"/v1/certificates?agent_id={agent}&status=active").data
    if len(active) != 1:
        track.siege.report("not one active certificate", "renew", str(len(active)))


def _idempotency(track: Track) -> None:
    body = {"name": f"once-{uuid4()}", "model_hash": "h"}
    calls = track.post("/v1/agents", body, Idempotency_Key=str(uuid4()))

    replies = track.run(calls, where="Idempotency-Key")
    ids = {reply.data["id"] for reply in replies if reply.status == 201}
    if len(ids) != 1 or any(reply.status != 201 for reply in replies):
        found = Counter(reply.status for reply in replies)
        track.siege.report("one key, several answers", "Idempotency-Key", f"{len(ids)} ids, {dict(found)}")


def _strikes(track: Track) -> None:
    """Three of the events are acknowledged, then the agent is stopped, revoked once, and audited once."""
    agent, certificate = certified_agent(track.line, track.key)
    event = {"agentId": agent, "actionType": "unauthorized_access_attempt", "details": {"target": "/etc"}}
    replies = track.run(track.post("/v1/events", event), where="strikes")
    found = Counter(reply.status for reply in replies)
    if found[201] != 3 or set(found) - {201, 422}:
        track.siege.report("not stopped at the third strike", "strikes", str(dict(found)))
    shown = track.ask("GET", f"/v1/certificates/{certificate['id']}").data
    if shown["status"] != "revoked" or track.ask("GET", f"/v1/agents/{agent}").data["status"] != "suspended":
        track.siege.report("not stopped after three strikes", "strikes", str(shown["status"]))
    entries = track.ask("GET", "/v1/audit-log?event_type=certificate.revoked&limit=100").data
    told = sum(certificate["id"] in (entry["affected_id"] or "") for entry in entries)
    if told != 1:
        track.siege.report("not audited once", "strikes", f"{told} entries of the revocation")


def _rotate(track: Track) -> None:
    """Each rotation that is answered gave a secret of its own; the last one's hint is what is shown."""
    body = {"url": "http://127.0.0.1:9/", "events": ["certificate.expired"]}
    hook = track.ask("POST", "/v1/webhooks", body).data
    path = f"/v1/webhooks/{hook['id']}"
    replies = track.run(track.post(f"{path}/rotate-secret", {"overlap_seconds": 0}), where="rotate-secret")
    good = [reply.data for reply in replies if reply.status == 200]
    hints = {one["secret_hint"] for one in good}
    shown = track.ask("GET", path).data
    if len({one["secret"] for one in good}) != len(good) or (good and shown["secret_hint"] not in hints):
        track.siege.report("secrets mixed up", "rotate-secret", f"{len(good)} rotations")
    track.ask("DELETE", path)


def _suspend(track: Track) -> None:
    agent, _ = certified_agent(track.line, track.key)
    reason = {"reason": "a race"}
    for step in ("suspend", "reinstate"):
        replies = track.run(track.post(f"/v1/agents/{agent}/{step}", reason), where=step)
        track.expect(step, replies, once=200, rest=[422])
    mixed = [
        call("POST", f"/v1/agents/{agent}/{step}", key=track.key, body=reason)
        for step in ("suspend", "reinstate")
    ]
    track.run(mixed * (PARALLEL // 2), where="suspend and reinstate")
    track.ask("POST", f"/v1/agents/{agent}/suspend", reason)
    if track.ask("GET", f"/v1/agents/{agent}").data["status"] != "suspended":
        track.siege.report("a suspension is lost", "suspend and reinstate", agent)


def _retire(track: Track) -> None:
    agent, _ = certified_agent(track.line, track.key)
    replies = track.run(track.post(f"/v1/agents/{agent}/retire", {"reason": "done"}), where="retire")
    track.expect("retire", replies, once=200, rest=[422])


def _delegation(track: Track) -> None:
    """No token is issued that begins after its certificate was revoked."""
    agent, certificate = certified_agent(track.line, track.key)
    grant = {"chain": [{"sub": "user:alice", "type": "human"}], "scope": "read"}
    revocation = call(
        "POST", f"/v1/certificates/{certificate['id']}/revoke", key=track.key,
        body={"reason": "keyCompromise"},
    )  # fmt: skip
    issue = call("POST", f"/v1/agents/{agent}/delegation", key=track.key, body=grant)
    replies = track.run([*[issue] * (PARALLEL - 1), revocation], where="delegation")
    after = track.ask("POST", f"/v1/agents/{agent}/delegation", grant)
    if after.status != 422 or any(reply.status not in (200, 422) for reply in replies):
        track.siege.report("a revoked agent delegates", "delegation", str(after))


def _key_roll(track: Track) -> None:
    """A key rolled in parallel has a successor for each roll that succeeded, and is void at once."""
    with environments.use(Environment.LIVE):
        tenant = tenancy.get_tenant(tenant_id=track.world.tenant.id)
        issued = tenancy.create_key(tenant=tenant, name="race", actor=ACTOR, now=now())
        before = ApiKey.objects.filter(name="race", tenant=tenant).count()

    def roll(_: int) -> int:
        with environments.use(Environment.LIVE):
            try:
                tenancy.roll_key(key_id=issued.row.id, overlap=timedelta(0), actor=ACTOR, now=now())
            except ApiKeyNotFound:
                return 0
        return 1

    with ThreadPoolExecutor(4) as pool:
        rolled = sum(pool.map(roll, range(4)))
    with environments.use(Environment.LIVE):
        made = ApiKey.objects.filter(name="race", tenant=tenant).count() - before
    reply = track.line.ask(call("GET", "/v1/agents", key=issued.secret))
    if rolled < 1 or made != rolled or reply.status != 401:
        track.siege.report(
            "rolls and keys differ", "roll", f"{rolled} rolls, {made} keys, old key {reply.status}"
        )


RACES: tuple[Race, ...] = (
    *(_certify, _revoke, _renew, _idempotency, _strikes, _rotate, _suspend, _retire, _delegation, _key_roll),
)
