"""Signals of the service, forgeries of them, and the feed that follows them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from agentid import Client
from agentid.client.generated.results import SignalStream
from agentid.verify import (
    NotValid,
    Reason,
    RevocationFeed,
    Revocations,
    SignalKind,
    SignalRules,
    TokenKeys,
    TokenRules,
    VerifiedToken,
    verify_signal,
    verify_token,
)
from agentid.verify.key_sets import KeyAges
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tests.waiting import eventually
from signals.models import Signal
from signals.tests.factories import derive
from tests.conftest import Reported
from tests.verify.test_tokens import (
    AUDIENCE,
    CHAIN,
    CLAIMS as TOKEN_CLAIMS,
    HEADER,
    KEYS,
    NOW,
    RULES as TOKEN_RULES,
    signed,
)

AGENT = "0193d2a4-7b5e-7cc3-98c4-dc0c0c073991"
RULES = SignalRules("https://service.example", "https://gateway.example")
SET_HEADER = {**HEADER, "typ": "secevent+jwt"}
SESSION, CREDENTIAL = SignalKind.SESSION_REVOKED.value, SignalKind.CREDENTIAL_CHANGE.value
AT = int(NOW.timestamp())
CLAIMS: dict[str, Any] = {
    "iss": RULES.issuer,
    "aud": RULES.audience,
    "iat": AT,
    "jti": "5c8b9b1e-0f3b-5a56-9d39-2f0b4b9f1c11",
    "sub_id": {"format": "did", "url": f"did:service:live:{AGENT}"},
    "events": {SESSION: {"event_timestamp": AT}},
}


def a_set(header: Mapping[str, Any] | None = None, **claims: Any) -> str:
    return signed({**CLAIMS, **claims}, {**SET_HEADER, **(header or {})})


def certificate_change(change: str, serial: str = "AB12", at: int = AT) -> str:
    details = {
        "event_timestamp": at,
        "credential_type": "x509",
        "change_type": change,
        "x509_serial": serial,
    }
    return a_set(events={CREDENTIAL: details})


def known_after(*tokens: str, **more: Any) -> Revocations:
    found = Revocations(**more)
    for token in tokens:
        found.apply(verify_signal(token, keys=KEYS, rules=RULES, now=NOW))
    return found


def test_signal_names_its_agent_token_certificate_or_key() -> None:
    subject = {"format": "jwt_id", "iss": RULES.issuer, "jti": "t1"}
    key = {"format": "opaque", "id": f"{RULES.issuer}#k1"}
    change = {"event_timestamp": AT, "credential_type": "jwk", "change_type": "revoke"}

    def read(token: str) -> tuple[str | None, ...]:
        found = verify_signal(token, keys=KEYS, rules=RULES, now=NOW)
        return found.agent_id, found.token_id, found.certificate_serial, found.key_id, found.change

    assert read(a_set()) == (AGENT, None, None, None, None)
    assert read(a_set(sub_id=subject)) == (None, "t1", None, None, None)
    assert read(certificate_change("revoke")) == (AGENT, None, "ab12", None, "revoke")
    assert read(a_set(sub_id=key, events={CREDENTIAL: change})) == (None, None, None, "k1", "revoke")
    assert read(a_set(events={SignalKind.VERIFICATION.value: {}})) == (None,) * 5


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (a_set({"typ": "delegation+jwt"}), Reason.MALFORMED),
        (a_set({"typ": "JWT"}), Reason.MALFORMED),
        (a_set({"alg": "none"}), Reason.UNSUPPORTED_ALGORITHM),
        (a_set({"alg": "HS256"}), Reason.UNSUPPORTED_ALGORITHM),
        (a_set({"jku": "https://evil.example"}), Reason.MALFORMED),
        (a_set({"kid": "other"}), Reason.UNKNOWN_KEY),
        (a_set({"kid": 1}), Reason.MALFORMED),
        (a_set(iss="https://evil.example"), Reason.INVALID_ISSUER),
        (a_set(aud="https://other.example"), Reason.WRONG_AUDIENCE),
        (a_set(aud=[RULES.audience, "https://other.example"]), Reason.WRONG_AUDIENCE),
        (a_set(sub=AGENT), Reason.MALFORMED),
        (a_set(exp=AT + 60), Reason.MALFORMED),
        (a_set(iat=AT + 3600), Reason.NOT_YET_VALID),
        (a_set(iat=True), Reason.MALFORMED),
        (a_set(iat=10**30), Reason.MALFORMED),
        (a_set(jti=None), Reason.MALFORMED),
        (a_set(events={}), Reason.MALFORMED),
        (a_set(events={SESSION: {"event_timestamp": AT}, CREDENTIAL: {}}), Reason.MALFORMED),
        (a_set(events={SESSION: []}), Reason.MALFORMED),
        (a_set(events={SESSION: {}}), Reason.MALFORMED),
        (a_set(events={CREDENTIAL: {"event_timestamp": AT}}), Reason.MALFORMED),
        (a_set(sub_id="x"), Reason.MALFORMED),
        (a_set(sub_id={"format": ["did"]}), Reason.MALFORMED),
        (a_set(sub_id={"format": "jwt_id", "iss": "other", "jti": "t"}), Reason.MALFORMED),
        (a_set(sub_id={"format": "opaque", "id": "other#k"}), Reason.MALFORMED),
        (signed(json.dumps(CLAIMS)[:-1] + ', "iss": "x"}', SET_HEADER), Reason.MALFORMED),
        (signed(CLAIMS, SET_HEADER, low=False), Reason.INVALID_SIGNATURE),
        (a_set()[:-8] + "AAAAAAAA", Reason.INVALID_SIGNATURE),
        ("x" * 20_000, Reason.MALFORMED),
        ("\ud800", Reason.MALFORMED),
        ("", Reason.MALFORMED),
    ],
)
def test_forged_signals_are_refused(token: str, reason: Reason) -> None:
    with pytest.raises(NotValid) as refused:
        verify_signal(token, keys=KEYS, rules=RULES, now=NOW)

    assert refused.value.reason is reason


def a_token(*, issued: int = AT, via: object = (), **more: Any) -> VerifiedToken:
    found = verify_token(signed(TOKEN_CLAIMS), keys=KEYS, rules=TOKEN_RULES, now=NOW)
    return replace(found, issued_at=datetime.fromtimestamp(issued, UTC), claims={"via": via}, **more)


def test_stopped_agent_ends_its_tokens_until_then_and_those_that_came_of_them() -> None:
    known = known_after(a_set())

    assert known.has_agent(AGENT)
    assert known.has_token(a_token(agent_id=AGENT))
    assert known.has_token(a_token(via=[{"agent_id": AGENT, "cert_serial": "1", "jti": "t"}]))
    assert not known.has_token(a_token(agent_id=AGENT, issued=AT + 1))
    assert not known.has_token(a_token())
    assert not known.has_token(a_token(via="hostile"))
    assert not known_after(a_set(), certificate_change("update", at=AT + 5)).has_agent(AGENT)


def test_revoked_token_ends_what_came_of_it() -> None:
    known = known_after(a_set(sub_id={"format": "jwt_id", "iss": RULES.issuer, "jti": "t1"}))

    assert known.has_token(a_token(token_id="t1"))
    assert known.has_token(a_token(via=[{"agent_id": "a", "cert_serial": "1", "jti": "t1"}]))
    assert not known.has_token(a_token(token_id="t2"))


def test_certificate_on_hold_counts_again_once_it_is_released() -> None:
    held = certificate_change("revoke")

    assert known_after(held).has_serial("ab12")
    assert known_after(held).has_token(a_token(certificate_serial="AB12"))
    assert not known_after(held, certificate_change("update")).has_serial("AB12")


@pytest.mark.parametrize("written", ["0AB1:2C", "ab12c", "00:0a:b1:2c", " AB12C"])
def test_revoked_serial_is_known_however_it_is_written(written: str) -> None:
    assert known_after(certificate_change("revoke", "0ab12c")).has_serial(written)
    assert known_after(certificate_change("revoke", written.strip())).has_serial("0ab12c")
    assert known_after(a_set()).has_agent(AGENT.upper())


def test_end_of_a_hold_that_is_told_again_undoes_no_later_revocation() -> None:
    held, released = certificate_change("revoke"), certificate_change("update", at=AT + 1)
    revoked = certificate_change("revoke", at=AT + 2)

    assert known_after(held, released, revoked, released).has_serial("ab12")
    assert known_after(held, released, revoked, held, released).has_serial("ab12")
    assert not known_after(held, released, held, released).has_serial("ab12")


def test_unknown_change_of_a_certificate_ends_it() -> None:
    assert known_after(certificate_change("delete")).has_serial("ab12")


def test_memory_is_bounded_and_said_to_be_full() -> None:
    old = int(datetime.now(UTC).timestamp()) - 1000
    many = [certificate_change("revoke", f"{n:x}", at=old) for n in range(1, 6)]

    assert not known_after(*many, most=5).is_full
    assert known_after(*many, most=4).is_full
    assert not known_after(*many, most=4, certificate_seconds=100).is_full


@pytest.fixture
def stream(client: Client, reported: Reported) -> Iterator[SignalStream]:
    found = client.signals.create(description="gateway")
    yield found
    client.signals.delete(found.stream_id)


def feed_of(client: Client, stream: SignalStream, **more: Any) -> RevocationFeed:
    return RevocationFeed(client, stream.stream_id, rules=SignalRules(stream.iss, stream.aud), **more)


def derived() -> bool:
    with environments.use(Environment.LIVE):
        derive()
    return True


def test_streams_are_managed(client: Client, stream: SignalStream) -> None:
    assert client.signals.configuration().issuer == stream.iss
    assert [each.stream_id for each in client.signals.streams()] == [stream.stream_id]
    assert client.signals.streams(stream.stream_id) == (stream,)
    assert client.signals.update(stream.stream_id, description="other").description == "other"
    assert client.signals.set_status(stream.stream_id, status="paused").status == "paused"
    assert client.signals.status(stream.stream_id).status == "paused"
    client.signals.set_status(stream.stream_id, status="enabled")
    client.signals.verify(stream.stream_id, state="s1")

    polled = client.signals.poll(stream.stream_id, max_events=5, return_immediately=True)

    assert len(polled.sets) >= 1
    assert not client.signals.poll(stream.stream_id, ack=list(polled.sets), return_immediately=True).sets


def test_feed_refuses_a_revoked_token_certificate_and_agent(
    client: Client, reported: Reported, stream: SignalStream, settings: Any
) -> None:
    settings.TOKEN_ISSUER = stream.iss  # signals are derived here, and signed by the service
    agent_id = str(reported.agent.id)
    rules = TokenRules(client.transport.configuration.base_url, AUDIENCE)
    issued = [client.delegation.issue(agent_id, chain=CHAIN, audience=AUDIENCE) for _ in range(2)]
    first, second = (TokenKeys(client).verify(each.token, rules=rules) for each in issued)
    certificate = next(client.certificates.list(agent_id=agent_id))

    with feed_of(client, stream) as feed:
        assert eventually(lambda: feed.is_current, seconds=30)
        assert not feed.is_revoked(first)
        client.delegation.revoke(issued[0].token_id, reason="done")
        assert eventually(lambda: derived() and feed.is_revoked(first), seconds=30), feed.last_error
        assert not feed.is_revoked(second, serial=certificate.serial_number)
        client.certificates.revoke(certificate.id, reason="keyCompromise")
        assert eventually(lambda: derived() and feed.is_revoked(second), seconds=30)
        assert feed.is_revoked(serial=certificate.serial_number)
        client.agents.retire(agent_id, reason="done")
        assert eventually(lambda: derived() and feed.is_revoked(agent_id=agent_id), seconds=30)


def test_feed_that_cannot_know_says_so(client: Client, stream: SignalStream) -> None:
    def is_unknown(feed: RevocationFeed) -> bool:
        with pytest.raises(NotValid) as refused:
            feed.is_revoked(serial="1")
        return refused.value.reason is Reason.STATUS_UNKNOWN

    moment = [0.0]
    feed = feed_of(client, stream, clock=lambda: moment[0])
    assert is_unknown(feed)
    feed.follow_once()
    assert not feed.is_revoked(serial="1")
    moment[0] += 31
    assert is_unknown(feed)
    client.signals.set_status(stream.stream_id, status="disabled")
    while feed.follow_once():
        pass
    assert is_unknown(feed)


def test_signal_that_does_not_verify_is_told_to_the_service_and_comes_no_more(
    client: Client, reported: Reported, stream: SignalStream
) -> None:
    client.signals.verify(stream.stream_id)
    feed = RevocationFeed(client, stream.stream_id, rules=SignalRules(stream.iss, "another"))
    with pytest.raises(NotValid):
        feed.follow_once()
    (waiting,) = Signal.objects.filter(stream_id=stream.stream_id)

    assert feed.follow_once() == 0

    waiting.refresh_from_db()
    assert waiting.refused_at is not None
    assert waiting.error == "invalid_audience: wrong_audience"
    # What it told will never be known.
    with pytest.raises(NotValid, match="status_unknown"):
        feed.is_revoked(serial="1")


def test_signal_of_an_unknown_key_waits_for_its_key_and_those_behind_it_too(
    client: Client, reported: Reported, stream: SignalStream
) -> None:
    moment = [0.0]
    feed = feed_of(client, stream, clock=lambda: moment[0])
    client.signals.verify(stream.stream_id)
    client.agents.retire(str(reported.agent.id), reason="behind it")
    derived()
    waiting = client.signals.poll(stream.stream_id, return_immediately=True).sets
    jti = next(iter(waiting))
    feed._ages.must_fetch = lambda kid: False  # type: ignore[method-assign]

    for at in (0.0, 30.0, 60.0):
        moment[0] = at
        with pytest.raises(NotValid, match="unknown_key"):
            feed.follow_once()
        assert client.signals.poll(stream.stream_id, return_immediately=True).sets == waiting
    moment[0] = 61.0
    for _ in range(2):
        with pytest.raises(NotValid, match="unknown_key"):
            feed.follow_once()

    assert len(waiting) > 1
    assert list(client.signals.poll(stream.stream_id, return_immediately=True).sets) == [*waiting][1:]
    assert Signal.objects.get(jti=jti).error.startswith("invalid_key: ")


def test_signals_beside_one_that_does_not_verify_count(client: Client, stream: SignalStream) -> None:
    agent = {"format": "did", "url": f"did:service:live:{AGENT}"}
    feed = feed_of(client, stream)
    feed._ages = KeyAges(KEYS)
    feed._rules = RULES

    refused = feed._received("j1", a_set(jti="j1", aud="other"))
    other = feed._received("j2", a_set(jti="j3"))
    good = feed._received("j4", a_set(jti="j4", sub_id=agent))

    assert (refused and refused.reason, other and other.reason, good) == (
        Reason.WRONG_AUDIENCE,
        Reason.MALFORMED,
        None,
    )
    assert feed.is_revoked(agent_id=AGENT)
